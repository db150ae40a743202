//! Parses `pod-cache-config.yaml`, which lists images to keep warm with their pod settings.

use std::{collections::BTreeMap, sync::Arc};

use runner_core::ImageReference;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_saphyr::Spanned;

use super::{ConfigError, EntryError, Parsed, yaml};
use crate::{
    PodOverrides, PodSettings, Problem, Source, is_quantity, parse_count, parse_time_to_live,
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
    resources: Option<Spanned<Resources>>,
}

/// The resources of a container, with the fields of Kubernetes in their order.
#[derive(Deserialize, Serialize)]
struct Resources {
    #[serde(skip_serializing_if = "Option::is_none")]
    claims: Option<Vec<ResourceClaim>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Serialize)]
struct ResourceClaim {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
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
            .map_err(|error| yaml::invalid(file, line, error))?;
        let time_to_live = match self.time_to_live {
            Some(text) => {
                let line = text.referenced.line();
                let (time, raised) = parse_time_to_live(&text.value)
                    .map_err(|error| yaml::invalid(file, line, EntryError::TimeToLive(error)))?;
                problems.extend(
                    raised.map(|why| {
                        Problem::error(&file.at_line(line), format!("timeToLive: {why}"))
                    }),
                );
                time
            }
            None => None,
        };
        if let Some(resources) = &self.resources
            && let Some((name, quantity)) = resources.value.malformed_quantity()
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
                .map(|resources| Arc::new(resources.value.overrides())),
            source: Some(file.at_line(line)),
        };
        Ok(PodCacheEntry { image, settings })
    }
}

// === impl Resources ===

impl Resources {
    /// Returns the name and quantity of the first resource whose quantity Kubernetes would refuse.
    fn malformed_quantity(&self) -> Option<(&str, &str)> {
        let mut all = [&self.requests, &self.limits]
            .into_iter()
            .flatten()
            .flatten();
        all.find(|(_, quantity)| !is_quantity(quantity))
            .map(|(name, quantity)| (name.as_str(), quantity.as_str()))
    }

    fn overrides(&self) -> PodOverrides {
        PodOverrides::new(&json!({"container": {"resources": self}}))
    }
}

fn count(
    field: &'static str,
    value: Option<Spanned<i64>>,
    file: &Source,
) -> Result<Option<u32>, ConfigError> {
    let Some(value) = value else { return Ok(None) };
    parse_count(value.value)
        .map_err(|error| EntryError::Count { field, error })
        .map_err(|error| yaml::invalid(file, value.referenced.line(), error))
}
