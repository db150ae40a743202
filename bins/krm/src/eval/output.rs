//! Shows the function's output and, with `--in-place`, writes it to the package.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    time::Duration,
};

use anstyle::Style;
use runner_client::EvaluateFunctionResponse;
use runner_resourcelist::Envelope;

use super::{Eval, input::Input};
use crate::{
    failure::Failure,
    list,
    merge::{self, Merge},
    package,
    report::{count, diff, printable, results, width},
};

pub(super) struct Output<'a> {
    pub(super) eval: &'a Eval,
    pub(super) input: &'a Input,
    pub(super) answer: &'a EvaluateFunctionResponse,
    pub(super) took: Duration,
}

// === impl Output ===

impl Output<'_> {
    /// Shows the log, the changes, the results and a summary line, in this order.
    ///
    /// Writes the package and the ResourceList, where requested, before the summary.
    pub(super) fn show(&self) -> Result<(), Failure> {
        let envelope = runner_resourcelist::scan(&self.answer.resource_list).map_err(|error| {
            Failure::failed(format!(
                "the function's answer is not a ResourceList: {error}"
            ))
        })?;
        self.show_log();
        let merge = match self.input.package() {
            Some(package) => {
                let items = list::split(&self.answer.resource_list)
                    .map_err(|error| Failure::failed(error.to_string()))?;
                Some(
                    merge::merge(package, &items)
                        .map_err(|error| Failure::failed(error.to_string()))?,
                )
            }
            None => None,
        };
        let list_goes_out = self.list_goes_out();
        let mut out: Box<dyn Write> = if list_goes_out {
            Box::new(anstream::stderr())
        } else {
            Box::new(anstream::stdout())
        };
        // A reader that closes its pipe early (`krm eval | head`) is not a failure.
        let _ = self.show_changes(&mut out, merge.as_ref(), &envelope);
        let has_errors = envelope.has_errors();
        let written = match &merge {
            Some(merge) if self.eval.in_place && !has_errors => self.write(merge)?,
            _ => false,
        };
        self.write_list()?;
        if let Some(merge) = &merge {
            let _ = self.show_summary(&mut out, merge, &envelope, written);
        }
        if has_errors {
            let number = results::summary(&envelope.results);
            return Err(Failure::failed(format!("the function reports {number}")));
        }
        Ok(())
    }

    fn list_goes_out(&self) -> bool {
        match &self.eval.output {
            Some(path) => path == Path::new("-"),
            None => self.input.package().is_none(),
        }
    }

    fn show_log(&self) {
        let log = String::from_utf8_lossy(&self.answer.log);
        let dim = Style::new().dimmed();
        let mut stderr = anstream::stderr().lock();
        for line in printable(log.trim_end()).lines() {
            let _ = writeln!(stderr, "{dim}log:{dim:#} {line}");
        }
    }

    fn show_changes(
        &self,
        out: &mut dyn Write,
        merge: Option<&Merge>,
        envelope: &Envelope,
    ) -> io::Result<()> {
        let mut out = out;
        if let Some(package) = self.input.package() {
            let mut stderr = anstream::stderr().lock();
            for link in &package.links {
                writeln!(
                    stderr,
                    "note: {} is a symbolic link and was passed by",
                    link.display()
                )?;
            }
        }
        if let Some(merge) = merge {
            diff::write(&mut out, &merge.plan.edits)?;
        }
        if let Some(table) = results::table(&envelope.results, width()) {
            writeln!(out, "{table}")?;
        }
        Ok(())
    }

    fn show_summary(
        &self,
        out: &mut dyn Write,
        merge: &Merge,
        envelope: &Envelope,
        written: bool,
    ) -> io::Result<()> {
        let files = count(merge.plan.edits.len(), "file");
        let written = match (merge.plan.edits.is_empty(), written) {
            (true, _) => "nothing to write".to_owned(),
            (false, true) => format!("{files} written"),
            (false, false) if self.eval.in_place => {
                "nothing was written, because the function reports an error".to_owned()
            }
            (false, false) => format!("{files} would be written with --in-place"),
        };
        writeln!(
            out,
            "{}: {} changed, {} added, {} removed, {} unchanged; {}; {written} ({:.0?})",
            printable(&self.eval.image),
            merge.changed,
            merge.added,
            merge.removed,
            merge.unchanged,
            results::summary(&envelope.results),
            self.took,
        )
    }

    fn write(&self, merge: &Merge) -> Result<bool, Failure> {
        let Some(package) = self.input.package() else {
            return Ok(false);
        };
        package::write(&package.root, &merge.plan.edits)
            .map_err(|error| Failure::failed(error.to_string()))?;
        Ok(true)
    }

    fn write_list(&self) -> Result<(), Failure> {
        let list = &self.answer.resource_list;
        let result = if self.list_goes_out() {
            io::stdout().lock().write_all(list)
        } else if let Some(path) = &self.eval.output {
            fs::write(path, list)
        } else {
            Ok(())
        };
        match result {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(
                format!("cannot write the ResourceList: {error}"),
            )),
            _ => Ok(()),
        }
    }
}
