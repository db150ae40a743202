//! Builders of configurations for the tests of this crate.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use runner_core::TagList;
use tempfile::TempDir;

use crate::{
    Age, Binaries, BinaryDeclaration, Configuration, Declaration, FileOptions, PodDeclaration,
    PodSettings, Source, Table, Wanted, table::Inputs,
};

pub(crate) const DEFAULT_PREFIX: &str = "ghcr.io/default/catalog";

/// A directory with files and binaries, and a list of objects.
pub(crate) struct Fixture {
    directory: TempDir,
    pub(crate) objects: Vec<Declaration>,
}

/// A builder of a declaration.
#[derive(Clone, Debug)]
pub(crate) struct Object(pub(crate) Declaration);

pub(crate) fn object(name: &str) -> Object {
    Object(Declaration {
        source: Source::Object {
            namespace: "fns".into(),
            name: name.into(),
        },
        age: Age {
            created: 0,
            name: name.to_owned(),
        },
        image: String::new(),
        prefixes: Vec::new(),
        binary: None,
        pod: None,
        problems: Vec::new(),
    })
}

// === impl Object ===

impl Object {
    pub(crate) fn image(mut self, image: &str) -> Self {
        self.0.image = image.to_owned();
        self
    }

    pub(crate) fn created(mut self, seconds: i64) -> Self {
        self.0.age.created = seconds;
        self
    }

    pub(crate) fn prefixes(mut self, prefixes: &[&str]) -> Self {
        self.0.prefixes = owned(prefixes);
        self
    }

    pub(crate) fn binary(mut self, path: &str, tags: &[&str]) -> Self {
        self.0.binary = Some(BinaryDeclaration {
            path: path.to_owned(),
            tags: tag_list(tags),
            standby: true,
        });
        self
    }

    pub(crate) fn pod(mut self, tags: &[&str]) -> Self {
        let settings = PodSettings::default();
        self.0.pod = Some(PodDeclaration {
            tags: tag_list(tags),
            settings,
        });
        self
    }

    pub(crate) fn max_pods(mut self, max: u32) -> Self {
        self.0
            .pod
            .as_mut()
            .expect("call pod() first")
            .settings
            .max_pods = Some(max);
        self
    }
}

// === impl Fixture ===

impl Fixture {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("functions")).unwrap();
        Self {
            directory,
            objects: Vec::new(),
        }
    }

    pub(crate) fn binaries(self, names: &[&str]) -> Self {
        for name in names {
            let path = self.path("functions").join(name);
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        self
    }

    pub(crate) fn plain_file(self, name: &str) -> Self {
        fs::write(self.path("functions").join(name), "").unwrap();
        self
    }

    pub(crate) fn config(self, text: &str) -> Self {
        self.write("config.yaml", text);
        self
    }

    pub(crate) fn pod_cache(self, text: &str) -> Self {
        self.write("pod-cache-config.yaml", text);
        self
    }

    /// Writes a file atomically, so that it is never read half written.
    fn write(&self, name: &str, text: &str) {
        let draft = self.path("draft");
        fs::write(&draft, text).unwrap();
        fs::rename(&draft, self.path(name)).unwrap();
    }

    pub(crate) fn object(mut self, object: Object) -> Self {
        self.objects.push(object.0);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn options(&self) -> FileOptions {
        FileOptions {
            functions_dir: self.path("functions"),
            config: self.path("config.yaml"),
            config_wanted: Wanted::Optional,
            pod_cache_config: self.path("pod-cache-config.yaml"),
            pod_cache_wanted: Wanted::Optional,
            default_prefix: DEFAULT_PREFIX.to_owned(),
            binaries: Binaries::Check,
        }
    }

    pub(crate) fn configuration(&self) -> Configuration {
        let configuration = Configuration::load(self.options()).unwrap();
        configuration.replace_objects(self.objects.iter().cloned());
        configuration
    }

    /// Builds the table; without binaries the directory has a fixed name, so that tables compare.
    pub(crate) fn table(&self) -> Table {
        let options = self.options();
        let read = |name: &str| fs::read_to_string(self.path(name)).unwrap_or_default();
        let exec = options.parse_config(&read("config.yaml")).unwrap();
        let pod_cache = options
            .parse_pod_cache(&read("pod-cache-config.yaml"))
            .unwrap();
        let anywhere = PathBuf::from("/nowhere");
        let has_binaries = fs::read_dir(&options.functions_dir)
            .unwrap()
            .next()
            .is_some();
        Table::build(Inputs {
            functions_dir: if has_binaries {
                &options.functions_dir
            } else {
                &anywhere
            },
            default_prefix: &options.default_prefix,
            exec: &exec.entries,
            pod_cache: &pod_cache.entries,
            declarations: self.objects.iter().collect(),
            problems: [exec.problems, pod_cache.problems].concat(),
            binaries: Binaries::Check,
        })
    }
}

fn tag_list(tags: &[&str]) -> TagList {
    TagList::parse(&owned(tags), |tag, why| panic!("{tag:?}: {why}"))
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}
