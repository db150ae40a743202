//! The bill of materials (SBOM) of an image as a CycloneDX document, for vulnerability scanners.
//!
//! It is made from the dependencies that cargo links into each program and the checksums of
//! Cargo.lock.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Stdio,
};

use anyhow::Context;
use runner_devtools::{cargo, failure, root};
use serde_json::{Value, json};

use super::{binary::Architecture, origin::Origin};

/// A package that is linked into a program; [`Packages`] stores it by purl.
#[derive(Debug, Default, PartialEq, Eq)]
struct Package {
    name: String,
    version: String,
    licence: String,
    /// Whether the package is part of this workspace and not from a registry.
    is_local: bool,
    dependencies: BTreeSet<String>,
}

type Packages = BTreeMap<String, Package>;

/// Returns the document of an image with these programs.
///
/// It is the same for all architectures and contains every package that is linked on any of them.
pub(crate) fn document(
    image: &str,
    programs: &[&str],
    architectures: &[Architecture],
    origin: &Origin,
) -> anyhow::Result<Value> {
    let mut packages = Packages::new();
    let mut roots = Vec::new();
    for program in programs {
        for architecture in architectures {
            let found = read(&tree(program, architecture.triple())?, &mut packages)?;
            if !roots.contains(&found) {
                roots.push(found);
            }
        }
    }
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    Ok(bom(image, &roots, &packages, &checksums(&lock), origin))
}

fn tree(program: &str, triple: &str) -> anyhow::Result<String> {
    let output = cargo()
        .args(["tree", "--locked", "--package", program, "--target", triple])
        .args(["--edges", "normal,no-proc-macro", "--prefix", "depth"])
        .args(["--format", "{p}|{l}"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        return Err(failure(
            format!("cargo tree of {program} failed: {}", output.status),
            "see the error of cargo above",
        ));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Reads lines such as `2serde v1.0.0|MIT`, which start with the depth.
///
/// Returns the purl of the first package.
fn read(tree: &str, packages: &mut Packages) -> anyhow::Result<String> {
    let mut path: Vec<String> = Vec::new();
    for line in tree.lines() {
        let line = line.strip_suffix(" (*)").unwrap_or(line);
        let digits = line.find(|character: char| !character.is_ascii_digit());
        let (depth, rest) = line.split_at(digits.context("cargo tree shows an odd line")?);
        let (package, licence) = rest
            .split_once('|')
            .context("cargo tree shows no licence")?;
        let mut words = package.split(' ');
        let name = words.next().unwrap_or_default();
        let version = words.next().unwrap_or_default().trim_start_matches('v');
        let purl = format!("pkg:cargo/{name}@{version}");
        path.truncate(depth.parse()?);
        if let Some(parent) = path.last().and_then(|parent| packages.get_mut(parent)) {
            parent.dependencies.insert(purl.clone());
        }
        path.push(purl.clone());
        packages.entry(purl).or_insert_with(|| Package {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: licence.to_owned(),
            is_local: words.next().is_some(),
            dependencies: BTreeSet::new(),
        });
    }
    path.into_iter().next().context("cargo tree shows nothing")
}

/// Returns the checksum of each package in Cargo.lock, by purl.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key));
        line.map(|rest| rest.trim_start_matches(" = ").trim_matches('"').to_owned())
    };
    lock.split("[[package]]")
        .filter_map(|block| {
            let (name, version) = (value(block, "name")?, value(block, "version")?);
            Some((
                format!("pkg:cargo/{name}@{version}"),
                value(block, "checksum")?,
            ))
        })
        .collect()
}

fn bom(
    image: &str,
    roots: &[String],
    packages: &Packages,
    checksums: &BTreeMap<String, String>,
    origin: &Origin,
) -> Value {
    let components: Vec<Value> = packages
        .iter()
        .map(|(purl, package)| {
            let mut component = json!({
                "type": if roots.contains(purl) { "application" } else { "library" },
                "bom-ref": purl,
                "name": package.name,
                "version": package.version,
                "purl": purl,
            });
            if !package.licence.is_empty() {
                // Older manifests separate alternative licences by a slash.
                let expression = package.licence.replace('/', " OR ");
                component["licenses"] = json!([{"expression": expression}]);
            }
            if let (false, Some(checksum)) = (package.is_local, checksums.get(purl)) {
                component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
            }
            component
        })
        .collect();
    let of_image = json!({"ref": image, "dependsOn": roots});
    let of_packages = packages
        .iter()
        .map(|(purl, package)| json!({"ref": purl, "dependsOn": package.dependencies}));
    let dependencies: Vec<Value> = [of_image].into_iter().chain(of_packages).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": origin.created(),
            "component": {
                "type": "container", "bom-ref": image, "name": image, "version": origin.version(),
            },
        },
        "components": components,
        "dependencies": dependencies,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0program v0.1.0 (/checkout/program)|Apache-2.0\n\
                        1one v1.0.0|MIT/Apache-2.0\n\
                        2two v2.0.0+build|ISC\n\
                        1two v2.0.0+build|ISC (*)\n";
    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"one\"\nversion = \"1.0.0\"\n\
                        source = \"registry\"\nchecksum = \"abc\"\n";

    #[test]
    fn reads_dependencies_from_the_tree() {
        let mut packages = Packages::new();
        let root = read(TREE, &mut packages).unwrap();
        assert_eq!(root, "pkg:cargo/program@0.1.0");
        let dependencies: Vec<_> = packages[&root].dependencies.iter().collect();
        assert_eq!(
            dependencies,
            ["pkg:cargo/one@1.0.0", "pkg:cargo/two@2.0.0+build"]
        );
        assert!(packages[&root].is_local);
        assert!(packages["pkg:cargo/one@1.0.0"].dependencies.len() == 1);
    }

    #[test]
    fn writes_packages_with_licence_and_checksum() {
        let mut packages = Packages::new();
        let root = read(TREE, &mut packages).unwrap();
        let origin = Origin::for_tests();
        let document = bom("image", &[root], &packages, &checksums(LOCK), &origin);
        let one = &document["components"][0];
        assert_eq!(one["purl"], "pkg:cargo/one@1.0.0");
        assert_eq!(one["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(one["hashes"][0]["content"], "abc");
        assert_eq!(document["components"][1]["type"], "application");
        assert_eq!(document["dependencies"][0]["ref"], "image");
    }

    #[test]
    fn lists_only_packages_that_are_linked_into_the_program() {
        let packages = |program| {
            let origin = Origin::for_tests();
            let document = document("image", &[program], &[Architecture::Amd64], &origin);
            let document = document.unwrap();
            let components = document["components"].as_array().unwrap().clone();
            let name = |component: &Value| component["name"].as_str().unwrap().to_owned();
            components.iter().map(name).collect::<BTreeSet<_>>()
        };
        assert!(packages("function-runner").contains("aws-lc-sys"));
        let wrapper = packages("wrapper-server");
        assert!(wrapper.contains("tonic") && !wrapper.contains("kube"));
        assert!(!wrapper.contains("tempfile"), "no dependency of tests");
    }
}
