//! Converts a `FunctionConfig` object into a declaration.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use kube::{ResourceExt, api::DynamicObject};
use runner_config::{
    Age, BinaryDeclaration, Declaration, PodDeclaration, PodOverrides, PodSettings, Problem,
    Source, is_quantity, parse_count, parse_time_to_live,
};
use runner_core::{TagList, environment::WRAPPER_STANDBY};

use crate::objects::{FunctionConfigSpec, PodExecutor, TemplateOverrides};

/// Annotation with the number of pods that are kept for each warm version.
const MIN_PODS: &str = "fn.kpt.dev/min-pods";

/// Annotation that turns standbys off for the function of an object.
const STANDBY: &str = "fn.kpt.dev/standby";

/// Converts an object. Never fails: invalid parts are reported in the declaration's problems.
#[must_use]
pub fn declaration(object: &DynamicObject) -> Declaration {
    let source = source(object);
    let created = object.metadata.creation_timestamp.as_ref();
    let age = Age {
        created: created.map_or(i64::MAX, |time| time.0.as_second()),
        name: object.name_any(),
    };
    let mut problems = Vec::new();
    let spec = object.data.get("spec").cloned().unwrap_or_default();
    let spec: FunctionConfigSpec = serde_json::from_value(spec).unwrap_or_else(|error| {
        problems.push(Problem::error(&source, format!("spec: {error}")));
        FunctionConfigSpec::default()
    });
    let standby = standby(object).unwrap_or_else(|why| {
        problems.push(Problem::error(&source, why));
        true
    });
    let min_pods = min_pods(object).unwrap_or_else(|why| {
        problems.push(Problem::error(&source, why));
        None
    });
    let binary = spec.binary_executor.map(|binary| BinaryDeclaration {
        path: binary.path,
        tags: tags("BinaryExecutor", &binary.tags, &source, &mut problems),
        standby,
    });
    if let Some(go) = spec.go_executor {
        tags("GoExecutor", &go.tags, &source, &mut problems);
    }
    let pod = spec.pod_executor.map(|mut pod| {
        if !standby {
            turn_standby_off(&mut pod);
        }
        pods(pod, min_pods, &source, &mut problems)
    });
    Declaration {
        source,
        age,
        image: spec.image,
        prefixes: spec.prefixes,
        binary,
        pod,
        problems,
    }
}

pub(super) fn source(object: &DynamicObject) -> Source {
    Source::Object {
        namespace: object.namespace().unwrap_or_default().into(),
        name: object.name_any().into(),
    }
}

/// Reads the annotation that turns standbys off.
///
/// It is an annotation and not a field of `spec`, because an API server drops fields that the
/// installed CRD does not have.
fn standby(object: &DynamicObject) -> Result<bool, String> {
    match object.annotations().get(STANDBY).map(String::as_str) {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(format!(
            "annotation {STANDBY}: {other:?} is neither \"true\" nor \"false\""
        )),
    }
}

/// Sets the environment variable that turns standbys off in the function's pods.
fn turn_standby_off(pod: &mut PodExecutor) {
    let overrides = pod.template_overrides.get_or_insert_default();
    let container = overrides.container.get_or_insert_default();
    container.env.push(EnvVar {
        name: WRAPPER_STANDBY.to_owned(),
        value: Some("0".to_owned()),
        ..EnvVar::default()
    });
}

/// Parses the tags of an executor.
///
/// The text of a problem is the same as in Porch's own components, which write to the same status
/// field.
fn tags(executor: &str, tags: &[String], source: &Source, problems: &mut Vec<Problem>) -> TagList {
    TagList::parse(tags, |tag, why| {
        let message = format!(
            "invalid {executor} tag constraints: tag {tag:?} is not a valid semver constraint: {why}"
        );
        problems.push(Problem::error(source, message));
    })
}

/// Reads the annotation with the number of pods to keep; 0 counts as not given.
fn min_pods(object: &DynamicObject) -> Result<Option<u32>, String> {
    let Some(text) = object.annotations().get(MIN_PODS) else {
        return Ok(None);
    };
    let count = text.parse().ok().and_then(|count| parse_count(count).ok());
    count.ok_or_else(|| format!("annotation {MIN_PODS}: {text:?} is not a count"))
}

fn pods(
    pod: PodExecutor,
    min_pods: Option<u32>,
    source: &Source,
    problems: &mut Vec<Problem>,
) -> PodDeclaration {
    let tags = tags("PodExecutor", &pod.tags, source, problems);
    let mut report = |field: &str, why: String| {
        problems.push(Problem::error(
            source,
            format!("podExecutor.{field}: {why}"),
        ));
    };
    let time_to_live = pod.time_to_live.and_then(|text| {
        let (time, raised) = parse_time_to_live(&text)
            .inspect_err(|error| report("timeToLive", error.to_string()))
            .ok()?;
        if let Some(why) = raised {
            report("timeToLive", why);
        }
        time
    });
    let mut count = |field: &str, value: Option<i64>| {
        parse_count(value.unwrap_or_default()).unwrap_or_else(|error| {
            report(field, error.to_string());
            None
        })
    };
    let max_pods = count("maxParallelExecutions", pod.max_parallel_executions);
    let max_queue = count("preferredMaxQueueLength", pod.preferred_max_queue_length);
    if let Some((name, quantity)) = pod.template_overrides.as_ref().and_then(malformed_quantity) {
        let why = format!("{name}: {quantity:?} is not a Kubernetes quantity");
        report("templateOverrides", why);
    }
    let settings = PodSettings {
        time_to_live,
        max_pods,
        max_queue,
        min_pods,
        overrides: pod
            .template_overrides
            .map(|overrides| Arc::new(PodOverrides::new(&overrides))),
        source: Some(source.clone()),
    };
    PodDeclaration { tags, settings }
}

fn malformed_quantity(overrides: &TemplateOverrides) -> Option<(&str, &str)> {
    [&overrides.container, &overrides.init_container]
        .into_iter()
        .flatten()
        .filter_map(|container| container.resources.as_ref())
        .find_map(malformed_resource)
}

/// Returns the name and quantity of the first resource whose quantity Kubernetes would refuse.
fn malformed_resource(resources: &ResourceRequirements) -> Option<(&str, &str)> {
    let lists = [&resources.requests, &resources.limits];
    let mut all = lists.into_iter().flatten().flatten();
    all.find(|(_, quantity)| !is_quantity(&quantity.0))
        .map(|(name, quantity)| (name.as_str(), quantity.0.as_str()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn annotated(standby: &str) -> Declaration {
        let object = json!({
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "FunctionConfig",
            "metadata": {"name": "fn", "annotations": {"fn.kpt.dev/standby": standby}},
            "spec": {
                "image": "fn",
                "binaryExecutor": {"path": "fn", "tags": ["v1"]},
                "podExecutor": {"tags": ["v2"]},
            },
        });
        declaration(&serde_json::from_value(object).unwrap())
    }

    #[rstest]
    #[case("true", true, &[])]
    #[case("false", false, &[])]
    #[case("no", true, &["annotation fn.kpt.dev/standby: \"no\" is neither \"true\" nor \"false\""])]
    fn turns_standbys_off_by_annotation(
        #[case] annotation: &str,
        #[case] standby: bool,
        #[case] problems: &[&str],
    ) {
        let declared = annotated(annotation);
        assert_eq!(declared.binary.unwrap().standby, standby);
        let overrides = declared.pod.unwrap().settings.overrides;
        let overrides = overrides.map(|overrides| TemplateOverrides::parse(&overrides));
        let container = overrides.and_then(|overrides| overrides.container);
        let env: Vec<_> = container.map(|it| it.env).unwrap_or_default();
        let env: Vec<_> = env
            .iter()
            .map(|it| (&*it.name, it.value.as_deref()))
            .collect();
        let expected = [("KRM_WRAPPER_STANDBY", Some("0"))];
        assert_eq!(env, expected[usize::from(standby)..]);
        let messages: Vec<_> = declared.problems.iter().map(|it| &*it.message).collect();
        assert_eq!(messages, problems);
    }
}
