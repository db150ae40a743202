//! Parses `config.yaml`, which maps images to cached executables.

use runner_core::ImageReference;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{ConfigError, Parsed, yaml};
use crate::Source;

/// One image, and the executable that runs it.
#[derive(Clone, Debug)]
pub(crate) struct ExecEntry {
    pub(crate) source: Source,
    pub(crate) function: String,
    pub(crate) image: ImageReference,
    /// Whether processes may be started before their input arrives.
    pub(crate) standby: bool,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    functions: Option<Vec<Function>>,
}

#[derive(Deserialize)]
struct Function {
    function: Spanned<String>,
    #[serde(default)]
    images: Option<Vec<Spanned<String>>>,
    standby: Option<bool>,
}

pub(super) fn parse(
    text: &str,
    file: &Source,
    default_prefix: &str,
) -> Result<Parsed<ExecEntry>, ConfigError> {
    let shape: yaml::Shape = yaml::parse(text, file)?;
    let document = match shape {
        yaml::Shape::Empty => return Ok(Parsed::default()),
        yaml::Shape::Map(_) => yaml::parse::<Document>(text, file)?,
        _ => {
            let message = "expected a map with the field \"functions\"";
            return Err(yaml::malformed(file, 1, message));
        }
    };
    let mut parsed = Parsed::default();
    shape.warn_of_unknown(&["functions"], file, &mut parsed.problems);
    for function in shape.field("functions").map_or(&[][..], yaml::Shape::items) {
        function.warn_of_unknown(
            &["function", "images", "standby"],
            file,
            &mut parsed.problems,
        );
    }
    for function in document.functions.unwrap_or_default() {
        let name = function.function;
        if name.value.is_empty() {
            let message = "\"function\" is empty: name a file under --functions";
            return Err(yaml::malformed(file, name.referenced.line(), message));
        }
        for image in function.images.unwrap_or_default() {
            let line = image.referenced.line();
            parsed.entries.push(ExecEntry {
                source: file.at_line(line),
                function: name.value.clone(),
                image: ImageReference::qualified(&image.value, default_prefix)
                    .map_err(|error| yaml::invalid(file, line, error))?,
                standby: function.standby.unwrap_or(true),
            });
        }
    }
    Ok(parsed)
}
