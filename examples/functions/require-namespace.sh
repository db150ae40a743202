#!/bin/sh
# A KRM function that checks that every namespaced resource has a namespace.
#
# It reads a ResourceList on standard input, writes it unchanged to standard output and appends
# `results`. A resource without a namespace is an error, and the function exits with 1. A resource in
# the namespace `default` is a warning. The function needs only a POSIX shell and awk. It reads lists
# in block style, which kpt, Porch and krm send.
set -eu

exec awk '
function report(severity, message) {
    results = results "- message: " message "\n  severity: " severity "\n" \
        "  resourceRef:\n    apiVersion: " version "\n    kind: " kind "\n    name: " name "\n" \
        "  field:\n    path: metadata.namespace\n"
    if (path != "") results = results "  file:\n    path: " path "\n"
}

# Checks the resource whose last line has been read.
function judge() {
    if (kind == "" || local_config || index(cluster_scoped, " " kind " ")) return
    checked++
    if (namespace == "") {
        report("error", "the resource has no namespace")
        errors++
    } else if (namespace == "default") {
        report("warning", "the resource is in the namespace default")
    }
}

function forget() {
    kind = version = name = namespace = path = ""
    local_config = in_metadata = 0
    child = -1
}

# Returns the text after the first colon, without quotes and comment.
function value(text) {
    sub(/^[^:]*:[ \t]*/, "", text)
    sub(/[ \t]+#.*$/, "", text)
    gsub(/^["\047]|["\047]$/, "", text)
    return text
}

BEGIN {
    cluster_scoped = " Namespace Node PersistentVolume StorageClass IngressClass PriorityClass" \
        " RuntimeClass ClusterRole ClusterRoleBinding CustomResourceDefinition APIService" \
        " CSIDriver ValidatingWebhookConfiguration MutatingWebhookConfiguration "
    dash = -1
    forget()
}

{ print; sub(/\r$/, "") }

/^[A-Za-z]/ {
    if (in_items) { judge(); forget() }
    in_items = ($0 ~ /^items:/)
    if (in_items) has_items = 1
    if ($0 ~ /^results:/) has_results = 1
    next
}

!in_items || /^[ ]*(#.*)?$/ { next }

{
    match($0, /^ */)
    column = RLENGTH
    line = substr($0, column + 1)
}

line ~ /^- / && (dash < 0 || column == dash) {
    judge()
    forget()
    dash = column
    match(line, /^-[ ]+/)
    column += RLENGTH
    line = substr(line, RLENGTH + 1)
    key_column = column
}

column == key_column {
    in_metadata = (line ~ /^metadata:/)
    if (line ~ /^kind:/) kind = value(line)
    if (line ~ /^apiVersion:/) version = value(line)
    # Metadata on one line, in braces: metadata: {name: x, namespace: y}
    if (in_metadata && match(line, /[{ ,]namespace: *[^,} ]+/))
        namespace = value(substr(line, RSTART + 1, RLENGTH - 1))
    if (in_metadata && match(line, /[{ ,]name: *[^,} ]+/))
        name = value(substr(line, RSTART + 1, RLENGTH - 1))
    next
}

in_metadata && column > key_column {
    if (child < 0) child = column
    if (column == child && line ~ /^name:/) name = value(line)
    if (column == child && line ~ /^namespace:/) namespace = value(line)
    if (line ~ /^internal\.config\.kubernetes\.io\/path:/) path = value(line)
    if (line ~ /^config\.kubernetes\.io\/local-config:/) local_config = (value(line) == "true")
}

END {
    if (in_items) judge()
    if (!has_items) {
        # Without items the list is not in block style, and a result could be wrong.
        print "require-namespace: the input is not a ResourceList in block style" | "cat >&2"
        close("cat >&2")
        exit 2
    }
    if (results != "" && !has_results) printf "results:\n%s", results
    printf "checked %d resources, %d without a namespace\n", checked, errors + 0 | "cat >&2"
    close("cat >&2")
    exit errors > 0
}
'
