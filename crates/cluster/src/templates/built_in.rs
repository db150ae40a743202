//! Recognises the built-in pod template in the form in which the API server stores it.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Map, Value, json};

use super::default;

/// Returns whether a template is the built-in one of this or an earlier version.
///
/// Such a template was stored by a runner and never edited. Fields that the API server adds to
/// stored objects are ignored.
pub(super) fn is_built_in(template: &PodTemplateSpec) -> bool {
    let Some(template) = without_defaults(template) else {
        return false;
    };
    [default::pod_template(), default::first_pod_template()]
        .iter()
        .any(|ours| without_defaults(ours).as_ref() == Some(&template))
}

/// Returns the template without the fields that hold the API server's defaults.
fn without_defaults(template: &PodTemplateSpec) -> Option<Value> {
    let mut value = serde_json::to_value(template).ok()?;
    strip(&mut value, &defaults());
    Some(value)
}

fn strip(value: &mut Value, defaults: &Map<String, Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, defaults)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| strip(field, defaults));
            fields.retain(|name, field| defaults.get(name) != Some(field));
        }
        _ => {}
    }
}

/// Returns the defaults that the API server writes into a stored template.
///
/// The pull policy is the default for an image without a tag, as in the built-in template.
fn defaults() -> Map<String, Value> {
    let defaults = json!({
        "creationTimestamp": null,
        "dnsPolicy": "ClusterFirst",
        "failureThreshold": 3,
        "imagePullPolicy": "Always",
        "periodSeconds": 10,
        "resources": {},
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "successThreshold": 1,
        "terminationGracePeriodSeconds": 30,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    });
    match defaults {
        Value::Object(defaults) => defaults,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the built-in template with the fields that an API server adds.
    fn stored(template: PodTemplateSpec) -> PodTemplateSpec {
        let mut value = serde_json::to_value(template).unwrap();
        value["metadata"]["creationTimestamp"] = Value::Null;
        let spec = &mut value["spec"];
        for (name, default) in [
            ("restartPolicy", json!("Always")),
            ("terminationGracePeriodSeconds", json!(30)),
            ("dnsPolicy", json!("ClusterFirst")),
            ("securityContext", json!({})),
            ("schedulerName", json!("default-scheduler")),
        ] {
            spec[name] = default;
        }
        for list in ["initContainers", "containers"] {
            let container = &mut spec[list][0];
            container["imagePullPolicy"] = json!("Always");
            container["terminationMessagePath"] = json!("/dev/termination-log");
            container["terminationMessagePolicy"] = json!("File");
            if container["resources"].is_null() {
                container["resources"] = json!({});
            }
        }
        let probe = &mut spec["containers"][0]["readinessProbe"];
        for (name, default) in [
            ("periodSeconds", 10),
            ("successThreshold", 1),
            ("failureThreshold", 3),
        ] {
            probe[name] = json!(default);
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn recognises_the_built_in_template_as_the_api_server_stores_it() {
        assert!(is_built_in(&default::pod_template()));
        assert!(is_built_in(&stored(default::pod_template())));
        assert!(is_built_in(&stored(default::first_pod_template())));
    }

    #[test]
    fn does_not_recognise_an_edited_template() {
        let edits: [fn(&mut Value); 4] = [
            |value| value["spec"]["nodeSelector"] = json!({"disk": "fast"}),
            |value| value["spec"]["containers"][0]["imagePullPolicy"] = json!("IfNotPresent"),
            |value| value["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]),
            |value| value["metadata"]["labels"] = json!({"team": "blue"}),
        ];
        for edit in edits {
            let mut value = serde_json::to_value(stored(default::pod_template())).unwrap();
            edit(&mut value);
            let template = serde_json::from_value(value).unwrap();
            assert!(!is_built_in(&template), "{template:?}");
        }
    }
}
