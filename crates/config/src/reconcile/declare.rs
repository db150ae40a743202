//! From an object to what it declares.

use std::sync::Arc;

use kube::{ResourceExt, api::DynamicObject};

use crate::{
    Age, BinaryDeclaration, Declaration, PodDeclaration, PodSettings, Problem, Source,
    objects::{FunctionConfigSpec, PodExecutor, TemplateOverrides},
    parse_duration, settings,
};

/// What an object declares. Never fails: what makes no sense is among its problems.
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
    let binary = spec.binary_executor.map(|binary| BinaryDeclaration {
        path: binary.path,
        tags: binary.tags,
    });
    let pod = spec
        .pod_executor
        .map(|pod| pods(pod, &source, &mut problems));
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

fn pods(pod: PodExecutor, source: &Source, problems: &mut Vec<Problem>) -> PodDeclaration {
    let mut complain = |field: &str, why: String| {
        problems.push(Problem::error(
            source,
            format!("podExecutor.{field}: {why}"),
        ));
    };
    let time_to_live = pod.time_to_live.and_then(|text| {
        parse_duration(&text)
            .inspect_err(|error| complain("timeToLive", error.to_string()))
            .ok()
    });
    let mut count = |field: &str, value: Option<i64>| {
        settings::count(value.unwrap_or_default()).unwrap_or_else(|why| {
            complain(field, why);
            None
        })
    };
    let max_pods = count("maxParallelExecutions", pod.max_parallel_executions);
    let max_queue = count("preferredMaxQueueLength", pod.preferred_max_queue_length);
    if let Some((name, quantity)) = pod.template_overrides.as_ref().and_then(malformed_quantity) {
        let why = format!("{name}: {quantity:?} is not a Kubernetes quantity");
        complain("templateOverrides", why);
    }
    let settings = PodSettings {
        time_to_live,
        max_pods,
        max_queue,
        overrides: pod.template_overrides.map(Arc::new),
        source: Some(source.clone()),
    };
    PodDeclaration {
        tags: pod.tags,
        settings,
    }
}

fn malformed_quantity(overrides: &TemplateOverrides) -> Option<(&str, &str)> {
    [&overrides.container, &overrides.init_container]
        .into_iter()
        .flatten()
        .filter_map(|container| container.resources.as_ref())
        .find_map(settings::malformed_quantity)
}
