use super::*;

fn labelled(item: &str) -> String {
    let list = format!(
        "kind: ResourceList\nfunctionConfig:\n  data: {{label: tier, value: web}}\nitems:\n{item}"
    );
    let result = apply(&list).unwrap();
    // Whatever was done is still YAML, and doing it again changes nothing.
    tree::parse(&result).unwrap();
    assert_eq!(apply(&result).unwrap(), result);
    let items = &result[result.find("items:\n").unwrap() + 7..];
    items.split("results:\n").next().unwrap().to_owned()
}

#[test]
fn adds_a_label_to_existing_labels() {
    assert_eq!(
        labelled("- metadata:\n    labels: # ours\n      app: x # é\n  kind: X\n"),
        "- metadata:\n    labels: # ours\n      tier: \"web\"\n      app: x # é\n  kind: X\n"
    );
    assert_eq!(
        labelled("- metadata: {labels: {app: x}}\n"),
        "- metadata: {labels: {\"tier\": \"web\", app: x}}\n"
    );
}

#[test]
fn adds_missing_metadata_and_labels() {
    assert_eq!(
        labelled("- metadata:\n    name: x\n"),
        "- metadata:\n    labels:\n      tier: \"web\"\n    name: x\n"
    );
    assert_eq!(
        labelled("- kind: X\n"),
        "- metadata:\n    labels:\n      tier: \"web\"\n  kind: X\n"
    );
    assert_eq!(
        labelled("- metadata:\n    labels:\n    name: x\n"),
        "- metadata:\n    labels: {\"tier\": \"web\"}\n    name: x\n"
    );
    assert_eq!(
        labelled("- {\"metadata\": {}}\n"),
        "- {\"metadata\": {\"labels\": {\"tier\": \"web\"}}}\n"
    );
}

#[test]
fn replaces_another_value() {
    assert_eq!(
        labelled("- metadata:\n    labels:\n      tier: 'db' # why\n"),
        "- metadata:\n    labels:\n      tier: \"web\" # why\n"
    );
}

#[test]
fn leaves_labelled_and_local_resources_unchanged() {
    for item in [
        "- metadata:\n    labels:\n      tier: web\n",
        "- metadata:\n    annotations:\n      config.kubernetes.io/local-config: \"true\"\n",
    ] {
        assert_eq!(labelled(item), item);
    }
}

#[test]
fn reports_every_change_as_a_result() {
    let list = "kind: ResourceList\nfunctionConfig: {data: {label: tier, value: web}}\nitems:\n\
                - kind: X\n  metadata:\n    name: 'a\"b'\n- kind: Y\n";
    let result = apply(list).unwrap();
    let root = tree::parse(&result).unwrap();
    let results = root.get("results").unwrap().items();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0].at(&["resourceRef", "name"]), "a\"b");
    assert_eq!(results[0].at(&["field", "path"]), "metadata.labels.tier");
}

#[test]
fn names_the_field_of_a_bad_configuration() {
    for (config, part) in [
        (
            "",
            "data.label of the functionConfig is not a label key: \"\"",
        ),
        (
            "functionConfig: {data: {label: 'a b', value: x}}\n",
            "data.label of the functionConfig is not a label key: \"a b\"",
        ),
        (
            "functionConfig: {data: {label: a, value: 'x y'}}\n",
            "data.value of the functionConfig is not a label value: \"x y\"",
        ),
    ] {
        let error = apply(&format!("kind: ResourceList\n{config}items: []\n")).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    assert!(apply("kind: Other\n").is_err());
    assert!(apply("").is_err());
}
