//! Input of the function: a package or a ResourceList, and a configuration.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use runner_core::with_causes;
use runner_package::{Package, config_map, is_resource, with_function_config};
use runner_yaml::Document;

use super::Eval;
use crate::failure::Failure;

/// The resources and the configuration that a function is called with.
#[derive(Debug)]
pub(super) struct Input {
    source: Source,
    config: Option<String>,
}

#[derive(Debug)]
enum Source {
    /// A package and its directory.
    Package(PathBuf, Package),
    /// A ResourceList from standard input.
    List(String),
}

// === impl Input ===

impl Input {
    pub(super) fn read(eval: &Eval) -> Result<Self, Failure> {
        if eval.image.trim().is_empty() {
            return Err(Failure::usage(
                "--image is empty; name the function's image",
            ));
        }
        let arguments = Arguments::parse(&eval.arguments)?;
        let config = config(eval.fn_config.as_deref(), &arguments.pairs)?;
        let source = if arguments.directory == Path::new("-") {
            if eval.in_place {
                return Err(Failure::usage(
                    "--in-place needs a directory, not standard input",
                ));
            }
            Source::List(standard_input()?)
        } else {
            let package = Package::read(&arguments.directory)
                .map_err(|error| Failure::failed(with_causes(&error)))?;
            Source::Package(arguments.directory, package)
        };
        Ok(Self { source, config })
    }

    /// Returns the package and its directory, or `None` if the list came from standard input.
    pub(super) fn package(&self) -> Option<(&Path, &Package)> {
        match &self.source {
            Source::Package(directory, package) => Some((directory, package)),
            Source::List(_) => None,
        }
    }

    /// Returns the ResourceList to send.
    pub(super) fn list(&self) -> Result<String, Failure> {
        match (&self.source, &self.config) {
            (Source::Package(_, package), config) => {
                Ok(package.to_resource_list(config.as_deref()))
            }
            (Source::List(text), None) => Ok(text.clone()),
            (Source::List(text), Some(config)) => {
                with_function_config(text, config).map_err(|error| {
                    Failure::failed(format!("standard input is not a ResourceList: {error}"))
                })
            }
        }
    }
}

/// The positional arguments, `[DIR] [KEY=VALUE…]`.
#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    directory: PathBuf,
    pairs: Vec<(String, String)>,
}

// === impl Arguments ===

impl Arguments {
    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let first = arguments.first().filter(|first| !first.contains('='));
        let pairs = &arguments[usize::from(first.is_some())..];
        let pairs = pairs.iter().map(|pair| match pair.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            _ => Err(Failure::usage(format!("{pair:?} is not KEY=VALUE"))),
        });
        let pairs: Vec<(String, String)> = pairs.collect::<Result<_, _>>()?;
        for (position, (key, _)) in pairs.iter().enumerate() {
            if pairs[..position].iter().any(|(known, _)| known == key) {
                return Err(Failure::usage(format!("{key:?} is given twice")));
            }
        }
        let directory = first.map_or_else(|| PathBuf::from("."), PathBuf::from);
        Ok(Self { directory, pairs })
    }
}

fn config(file: Option<&Path>, pairs: &[(String, String)]) -> Result<Option<String>, Failure> {
    let Some(path) = file else {
        return Ok((!pairs.is_empty()).then(|| config_map(pairs)));
    };
    if !pairs.is_empty() {
        return Err(Failure::usage(
            "give either --fn-config or KEY=VALUE pairs, not both",
        ));
    }
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!(
            "cannot read --fn-config {}: {error}",
            path.display()
        ))
    })?;
    let bad = |reason: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "--fn-config {} is not a resource: {reason}",
            path.display()
        ))
    };
    let document = Document::parse(&text).map_err(|error| bad(&error))?;
    if !is_resource(&document) {
        return Err(bad(&"it has no apiVersion and kind"));
    }
    // Only the resource itself fits into a list: `---` and comments after its last line are left
    // out.
    Ok(Some(document.text().to_owned()))
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::failed(format!("cannot read standard input: {error}")))?;
    runner_resourcelist::scan(text.as_bytes()).map_err(|error| {
        Failure::failed(format!("standard input is not a ResourceList: {error}"))
            .hint("pipe a ResourceList in, or name a package's directory instead of -")
    })?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(&[], ".", &[])]
    #[case(&["pkg"], "pkg", &[])]
    #[case(&["a=b"], ".", &[("a", "b")])]
    #[case(&["pkg", "a=b=c", "d="], "pkg", &[("a", "b=c"), ("d", "")])]
    #[case(&["-"], "-", &[])]
    fn parses_directory_and_pairs(
        #[case] arguments: &[&str],
        #[case] directory: &str,
        #[case] pairs: &[(&str, &str)],
    ) {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let parsed = Arguments::parse(&arguments).unwrap();
        assert_eq!(parsed.directory, Path::new(directory));
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        assert_eq!(parsed.pairs, pairs.iter().map(own).collect::<Vec<_>>());
    }

    #[rstest]
    #[case(&["pkg", "other"])]
    #[case(&["=x"])]
    #[case(&["a=1", "a=2"])]
    fn rejects_malformed_arguments(#[case] arguments: &[&str]) {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        assert!(Arguments::parse(&arguments).is_err());
    }
}
