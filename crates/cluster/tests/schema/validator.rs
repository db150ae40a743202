//! A validator that applies a structural schema like an API server, as far as the CRDs need it.
//!
//! It drops unknown and null fields, fills in defaults and validates.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Prepares the object as an API server would, and returns the validation errors.
pub(crate) fn admit(object: &mut Value, schema: &Value) -> Vec<String> {
    // Every schema has these fields, even if it does not list them.
    let mut schema = schema.clone();
    for (field, kind) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        let known = serde_json::json!({"type": kind, "x-kubernetes-preserve-unknown-fields": true});
        schema["properties"][field] = known;
    }
    prepare(object, &schema);
    let mut complaints = Vec::new();
    validate(object, &schema, "", &mut complaints);
    complaints
}

/// Returns the places where a schema is not structural; an API server would refuse such a CRD.
pub(crate) fn check_structure(schema: &Value) -> Vec<String> {
    let mut flaws = Vec::new();
    structure(schema, "", &mut flaws);
    flaws
}

fn structure(schema: &Value, path: &str, flaws: &mut Vec<String>) {
    let int_or_string = schema["x-kubernetes-int-or-string"] == true;
    if schema["type"].is_string() == int_or_string {
        flaws.push(format!(
            "{path}: must have one type, or be an int-or-string"
        ));
    }
    for word in [
        "$ref",
        "definitions",
        "nullable",
        "title",
        "oneOf",
        "allOf",
        "not",
    ] {
        if !schema[word].is_null() {
            flaws.push(format!("{path}: has {word}"));
        }
    }
    if !schema["properties"].is_null() && !schema["additionalProperties"].is_null() {
        flaws.push(format!("{path}: has properties and additionalProperties"));
    }
    for key in schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let key = key.as_str().unwrap();
        let items = &schema["items"];
        let required = items["required"]
            .as_array()
            .is_some_and(|list| list.contains(&key.into()));
        if !required && items["properties"][key]["default"].is_null() {
            flaws.push(format!(
                "{path}: list key {key} is neither required nor defaulted"
            ));
        }
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        structure(inner, &format!("{path}.{name}"), flaws);
    }
    for nested in ["items", "additionalProperties"] {
        if !schema[nested].is_null() {
            structure(&schema[nested], &format!("{path}[]"), flaws);
        }
    }
}

fn prepare(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => prepare_object(fields, schema),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| prepare(item, &schema["items"])),
        _ => {}
    }
}

fn prepare_object(fields: &mut Map<String, Value>, schema: &Value) {
    if let Value::Object(values) = &schema["additionalProperties"] {
        let values = Value::Object(values.clone());
        fields
            .values_mut()
            .for_each(|value| prepare(value, &values));
        return;
    }
    let preserve = schema["x-kubernetes-preserve-unknown-fields"] == true;
    fields.retain(|name, value| {
        let known = !schema["properties"][name].is_null();
        (known && !value.is_null()) || (!known && preserve)
    });
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !property["default"].is_null() && !fields.contains_key(name) {
            fields.insert(name.clone(), property["default"].clone());
        }
        if let Some(value) = fields.get_mut(name) {
            prepare(value, property);
        }
    }
}

fn validate(value: &Value, schema: &Value, path: &str, complaints: &mut Vec<String>) {
    let mut complain = |what: String| complaints.push(format!("{path}: {what}"));
    if !has_type(value, schema) {
        complain(format!(
            "must be {}",
            schema["type"].as_str().unwrap_or("integer or string")
        ));
        return;
    }
    if let Some(text) = value.as_str() {
        if schema["minLength"]
            .as_u64()
            .is_some_and(|least| (text.chars().count() as u64) < least)
        {
            complain("too short".to_owned());
        }
        if let Some(pattern) = schema["pattern"].as_str()
            && !regex::Regex::new(pattern).unwrap().is_match(text)
        {
            complain(format!("{text:?} does not match the pattern"));
        }
        if schema["format"] == "duration" && !is_duration(text) {
            complain(format!("{text:?} is not a duration"));
        }
    }
    if let Some(items) = value.as_array() {
        if schema["minItems"]
            .as_u64()
            .is_some_and(|least| (items.len() as u64) < least)
        {
            complain("too few items".to_owned());
        }
        if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array() {
            let key = |item: &Value| -> Vec<String> {
                keys.iter()
                    .map(|key| item[key.as_str().unwrap()].to_string())
                    .collect()
            };
            if items.iter().map(key).collect::<BTreeSet<_>>().len() < items.len() {
                complain("duplicate items".to_owned());
            }
        }
        for item in items {
            validate(item, &schema["items"], &format!("{path}[]"), complaints);
        }
        return;
    }
    let Some(fields) = value.as_object() else {
        return;
    };
    for required in schema["required"].as_array().into_iter().flatten() {
        let required = required.as_str().unwrap();
        if !fields.contains_key(required) {
            complain(format!("{required} is required"));
        }
    }
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if !holds(rule["rule"].as_str().unwrap(), fields) {
            complain(rule["message"].as_str().unwrap().to_owned());
        }
    }
    for (name, inner) in fields {
        let schema = match &schema["properties"][name] {
            Value::Null => &schema["additionalProperties"],
            property => property,
        };
        if !schema.is_null() {
            validate(inner, schema, &format!("{path}.{name}"), complaints);
        }
    }
}

fn has_type(value: &Value, schema: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_string() || value.is_i64();
    }
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64(),
        other => panic!("the validator does not know type {other:?}"),
    }
}

/// Returns whether the text is a Go duration or a number of days or weeks, as in the API server.
fn is_duration(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    runner_core::parse_duration(text).is_ok()
        || matches!(words[..], [number, "day" | "days" | "week" | "weeks"] if number.parse::<u32>().is_ok())
}

/// Evaluates a rule of the only form in use: `has(self.a) || has(self.b)`.
fn holds(rule: &str, fields: &Map<String, Value>) -> bool {
    rule.split("||").any(|term| {
        let field = term
            .trim()
            .strip_prefix("has(self.")
            .and_then(|rest| rest.strip_suffix(')'));
        fields.contains_key(field.expect("a rule of the known form"))
    })
}
