//! Shows the function's output and, with `--in-place`, writes it to the package.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    time::Duration,
};

use anstyle::Style;
use runner_client::EvaluateFunctionResponse;
use runner_core::with_causes;
use runner_package::{Plan, Written, check_new_files, merge, write};
use runner_resourcelist::Envelope;

use super::{Eval, input::Input};
use crate::{
    failure::Failure,
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
        let plan = self.plan()?;
        let list_goes_out = self.list_goes_out();
        let mut out: Box<dyn Write> = if list_goes_out {
            Box::new(anstream::stderr())
        } else {
            Box::new(anstream::stdout())
        };
        // A reader that closes its pipe early (`krm eval | head`) is not a failure.
        let _ = self.show_changes(&mut out, plan.as_ref(), &envelope);
        let has_errors = envelope.has_errors();
        let written = match (&plan, self.input.package()) {
            (Some(plan), Some((directory, _))) if self.eval.in_place && !has_errors => Some(
                write(directory, &plan.edits)
                    .map_err(|error| Failure::failed(with_causes(&error)))?,
            ),
            _ => None,
        };
        self.write_list()?;
        if let Some(plan) = &plan {
            let _ = self.show_summary(&mut out, plan, &envelope, written.as_ref());
        }
        if has_errors {
            let number = results::summary(&envelope.results);
            return Err(Failure::failed(format!("the function reports {number}")));
        }
        Ok(())
    }

    /// Returns the changes to the package, or `None` if the list came from standard input.
    fn plan(&self) -> Result<Option<Plan>, Failure> {
        let Some((directory, package)) = self.input.package() else {
            return Ok(None);
        };
        let plan = merge(package, &self.answer.resource_list)
            .map_err(|error| Failure::failed(with_causes(&error)))?;
        check_new_files(directory, &plan.edits)
            .map_err(|error| Failure::failed(with_causes(&error)))?;
        Ok(Some(plan))
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
        plan: Option<&Plan>,
        envelope: &Envelope,
    ) -> io::Result<()> {
        let mut out = out;
        if let Some((_, package)) = self.input.package() {
            let mut stderr = anstream::stderr().lock();
            for link in package.links() {
                writeln!(
                    stderr,
                    "note: {} is a symbolic link and was passed by",
                    link.display()
                )?;
            }
        }
        if let Some(plan) = plan {
            diff::write(&mut out, &plan.edits)?;
        }
        if let Some(table) = results::table(&envelope.results, width()) {
            writeln!(out, "{table}")?;
        }
        Ok(())
    }

    fn show_summary(
        &self,
        out: &mut dyn Write,
        plan: &Plan,
        envelope: &Envelope,
        written: Option<&Written>,
    ) -> io::Result<()> {
        let written = match written {
            _ if plan.edits.is_empty() => "nothing to write".to_owned(),
            Some(written) => format!("{} written", count(written.files(), "file")),
            None if self.eval.in_place => {
                "nothing was written, because the function reports an error".to_owned()
            }
            None => {
                let files = count(plan.edits.len(), "file");
                format!("{files} would be written with --in-place")
            }
        };
        writeln!(
            out,
            "{}: {} changed, {} added, {} removed, {} unchanged; {}; {written} ({:.0?})",
            printable(&self.eval.image),
            plan.changed,
            plan.added,
            plan.removed,
            plan.unchanged,
            results::summary(&envelope.results),
            self.took,
        )
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
