//! Parses `pod-cache-config.yaml`, which lists images to keep warm with their pod settings.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::ResourceRequirements;
use runner_core::ImageReference;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{ConfigError, Parsed, yaml};
use crate::{
    PodSettings, Problem, Source,
    objects::{ContainerOverrides, TemplateOverrides},
    settings,
};

/// One image to keep warm.
#[derive(Clone, Debug)]
pub(crate) struct PodCacheEntry {
    pub(crate) image: ImageReference,
    pub(crate) settings: PodSettings,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: Spanned<String>,
    time_to_live: Option<Spanned<String>>,
    max_waitlist_length: Option<Spanned<i64>>,
    max_parallel_pods_per_function: Option<Spanned<i64>>,
    min_pods: Option<Spanned<i64>>,
    resources: Option<Spanned<ResourceRequirements>>,
}

const FIELDS: [&str; 6] = [
    "name",
    "timeToLive",
    "maxWaitlistLength",
    "maxParallelPodsPerFunction",
    "minPods",
    "resources",
];

/// Parses a list of entries, or the oldest form: a map of image to time to live.
pub(super) fn parse(
    text: &str,
    file: &Source,
    default_prefix: &str,
) -> Result<Parsed<PodCacheEntry>, ConfigError> {
    let shape: yaml::Shape = yaml::parse(text, file)?;
    let mut parsed = Parsed::default();
    let entries: Vec<Entry> = match &shape {
        yaml::Shape::Empty => return Ok(parsed),
        yaml::Shape::List(items) => {
            for item in items {
                item.warn_of_unknown(&FIELDS, file, &mut parsed.problems);
                if let Some(resources) = item.field("resources") {
                    resources.warn_of_unknown(
                        &["requests", "limits", "claims"],
                        file,
                        &mut parsed.problems,
                    );
                }
            }
            yaml::parse(text, file)?
        }
        yaml::Shape::Map(fields) => {
            let mut times: BTreeMap<String, Spanned<String>> = yaml::parse(text, file)?;
            let in_file_order = fields.iter().map(|(name, _)| name.clone());
            in_file_order
                .map(|name| Entry::of_map(times.remove(&name.value), name))
                .collect()
        }
        yaml::Shape::Scalar => {
            let message = "expected a list of entries with \"name\", or a map of image to duration";
            return Err(yaml::malformed(file, 1, message));
        }
    };
    for entry in entries {
        let entry = entry.compile(file, default_prefix, &mut parsed.problems)?;
        parsed.entries.push(entry);
    }
    Ok(parsed)
}

// === impl Entry ===

impl Entry {
    fn of_map(time_to_live: Option<Spanned<String>>, name: Spanned<String>) -> Self {
        Self {
            name,
            time_to_live,
            max_waitlist_length: None,
            max_parallel_pods_per_function: None,
            min_pods: None,
            resources: None,
        }
    }

    fn compile(
        self,
        file: &Source,
        default_prefix: &str,
        problems: &mut Vec<Problem>,
    ) -> Result<PodCacheEntry, ConfigError> {
        let line = self.name.referenced.line();
        let image = ImageReference::qualified(&self.name.value, default_prefix)
            .map_err(|error| yaml::malformed(file, line, error.to_string()))?;
        let time_to_live =
            match self.time_to_live {
                Some(text) => {
                    let line = text.referenced.line();
                    let (time, raised) = settings::time_to_live(&text.value)
                        .map_err(|why| yaml::malformed(file, line, format!("timeToLive: {why}")))?;
                    problems.extend(raised.map(|why| {
                        Problem::error(&file.at_line(line), format!("timeToLive: {why}"))
                    }));
                    time
                }
                None => None,
            };
        if let Some(resources) = &self.resources
            && let Some((name, quantity)) = settings::malformed_quantity(&resources.value)
        {
            let message = format!("resources: {name}: {quantity:?} is not a Kubernetes quantity");
            return Err(yaml::malformed(file, resources.referenced.line(), message));
        }
        let settings = PodSettings {
            time_to_live,
            max_pods: count(
                "maxParallelPodsPerFunction",
                self.max_parallel_pods_per_function,
                file,
            )?,
            max_queue: count("maxWaitlistLength", self.max_waitlist_length, file)?,
            min_pods: count("minPods", self.min_pods, file)?,
            overrides: self
                .resources
                .map(|resources| Arc::new(of_container(resources.value))),
            source: Some(file.at_line(line)),
        };
        Ok(PodCacheEntry { image, settings })
    }
}

fn of_container(resources: ResourceRequirements) -> TemplateOverrides {
    let container = ContainerOverrides {
        resources: Some(resources),
        ..Default::default()
    };
    TemplateOverrides {
        container: Some(container),
        ..Default::default()
    }
}

fn count(
    field: &str,
    value: Option<Spanned<i64>>,
    file: &Source,
) -> Result<Option<u32>, ConfigError> {
    let Some(value) = value else { return Ok(None) };
    settings::count(value.value)
        .map_err(|why| yaml::malformed(file, value.referenced.line(), format!("{field}: {why}")))
}
