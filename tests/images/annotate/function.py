"""A function in Python: annotates every item with the data of its configuration."""

import sys

import yaml


def annotate(resources):
    wanted = (resources.get("functionConfig") or {}).get("data") or {}
    for item in resources.get("items") or []:
        metadata = item.setdefault("metadata", {})
        metadata.setdefault("annotations", {}).update(wanted)
    resources["results"] = [
        {"severity": "info", "message": f"annotated {len(resources.get('items') or [])} items"}
    ]
    return resources


yaml.safe_dump(annotate(yaml.safe_load(sys.stdin)), sys.stdout, sort_keys=False)
