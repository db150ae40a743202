//! Converts the schemas generated from Rust types into those that an API server needs.
//!
//! The types express less than the API: the generated schema makes optional fields nullable, and
//! the Kubernetes types have neither patterns nor defaults. The corrections here decide which
//! objects an API server accepts.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Returns a schema for the metadata of a templated object.
///
/// It preserves unknown fields, since the API server drops fields that a schema does not name.
pub(super) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Corrects a generated schema so that an API server accepts it and validates objects correctly.
pub(super) fn refine(schema: &mut Value) {
    visit("", schema, &mut refine_node);
}

/// Removes the descriptions below some fields, whose types Kubernetes itself documents.
pub(super) fn remove_descriptions_below(schema: &mut Value, fields: &[&str]) {
    visit("", schema, &mut |name, node| {
        if !fields.contains(&name) {
            return;
        }
        let own = node.remove("description");
        for inner in node.values_mut() {
            remove_descriptions(inner);
        }
        if let Some(own) = own {
            node.insert("description".to_owned(), own);
        }
    });
}

/// Removes every description; a property named `description` is an object, not a string, and stays.
fn remove_descriptions(value: &mut Value) {
    match value {
        Value::Object(node) => {
            node.retain(|key, inner| key != "description" || !inner.is_string());
            node.values_mut().for_each(remove_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_descriptions),
        _ => {}
    }
}

fn refine_node(name: &str, node: &mut Map<String, Value>) {
    // The API server drops a null for a field that is not nullable before validation. A null for a
    // nullable field would count as present, and a spec of nulls as having an executor.
    node.remove("nullable");
    match name {
        // The API allows these names to be empty, for compatibility with very old clients.
        "configMapKeyRef" | "secretKeyRef" | "configMapRef" | "secretRef" => {
            make_optional(node, "name", json!(""));
            node.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
        }
        "fileKeyRef" => {
            set(node, "optional", "default", json!(false));
            node.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
        }
        "fieldRef" | "resourceFieldRef" | "selector" => {
            node.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
        }
        "limits" | "requests" => {
            if let Some(Value::Object(quantity)) = node.get_mut("additionalProperties") {
                make_quantity(quantity);
            }
        }
        "divisor" => make_quantity(node),
        "targetPort" => make_int_or_string(node),
        "claims" => make_map(node, &["name"]),
        "ports" => {
            if let Some(Value::Object(port)) = node.get_mut("items") {
                set(port, "protocol", "default", json!("TCP"));
            }
            make_map(node, &["port", "protocol"]);
        }
        _ => {}
    }
}

fn make_optional(node: &mut Map<String, Value>, field: &str, default: Value) {
    if let Some(Value::Array(required)) = node.get_mut("required") {
        required.retain(|name| name != field);
        if required.is_empty() {
            node.remove("required");
        }
    }
    set(node, field, "default", default);
}

fn make_quantity(node: &mut Map<String, Value>) {
    make_int_or_string(node);
    node.insert("pattern".to_owned(), json!(QUANTITY));
}

fn make_int_or_string(node: &mut Map<String, Value>) {
    node.insert(
        "anyOf".to_owned(),
        json!([{"type": "integer"}, {"type": "string"}]),
    );
    node.insert("x-kubernetes-int-or-string".to_owned(), json!(true));
}

/// Makes the schema of a list one in which no two items have the same keys.
fn make_map(node: &mut Map<String, Value>, keys: &[&str]) {
    node.insert("x-kubernetes-list-type".to_owned(), json!("map"));
    node.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
}

fn set(node: &mut Map<String, Value>, field: &str, key: &str, value: Value) {
    if let Some(Value::Object(property)) = node
        .get_mut("properties")
        .and_then(|properties| properties.get_mut(field))
    {
        property.insert(key.to_owned(), value);
    }
}

/// Visits a schema and all nested schemas, each with the name of the field it describes.
fn visit(name: &str, schema: &mut Value, change: &mut impl FnMut(&str, &mut Map<String, Value>)) {
    let Value::Object(node) = schema else { return };
    change(name, node);
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        for (field, property) in properties {
            visit(field, property, change);
        }
    }
    for nested in ["items", "additionalProperties"] {
        if let Some(inner) = node.get_mut(nested) {
            visit("", inner, change);
        }
    }
}
