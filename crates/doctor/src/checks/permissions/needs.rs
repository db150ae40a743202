//! Permissions that the runner needs, and the commands that grant them.

use runner_cluster::objects::GROUP;

use crate::context::{Account, Context};

/// The permissions needed for one kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// API group; empty for the core group.
    pub(super) group: &'static str,
    /// Plural name of the resource.
    pub(super) resource: &'static str,
    /// Name of the subresource; empty for the object itself.
    pub(super) subresource: &'static str,
    /// Name of the only object needed; `None` for all objects.
    pub(super) name: Option<String>,
    pub(super) verbs: &'static [&'static str],
    pub(super) namespace: String,
    /// The consequence of a missing permission, for messages.
    pub(super) without: &'static str,
    /// Whether the runner works without the permission.
    pub(super) optional: bool,
}

/// Returns all permissions needed with the flags of the Deployment.
pub(super) fn needs(context: &Context) -> Vec<Need> {
    let namespace = &context.options.namespace;
    let need = |group, resource, verbs, without| Need {
        group,
        resource,
        subresource: "",
        name: None,
        verbs,
        namespace: namespace.clone(),
        without,
        optional: false,
    };
    let optional = |need: Need| Need {
        optional: true,
        ..need
    };
    let mut needs = vec![
        need(
            "",
            "pods",
            &["create", "delete", "get", "list", "patch", "watch"],
            "no function runs in a pod",
        ),
        need(
            GROUP,
            "functionconfigs",
            &["get", "list", "watch"],
            "FunctionConfig objects have no effect",
        ),
        optional(need(
            GROUP,
            "functionconfigs",
            &["patch"],
            "the finalizer of older runners stays on objects",
        )),
        optional(Need {
            subresource: "status",
            ..need(
                GROUP,
                "functionconfigs",
                &["patch"],
                "the status of FunctionConfig objects shows no errors",
            )
        }),
        need(
            "",
            "podtemplates",
            &["get", "list", "watch"],
            "the pod template is not read",
        ),
        optional(need(
            "",
            "podtemplates",
            &["create"],
            "the built-in template is not stored for operators to change",
        )),
        optional(need(
            GROUP,
            "servicetemplates",
            &["create", "get", "list", "watch"],
            "the service template is not read or stored",
        )),
    ];
    if context.flag("pod-connect").as_deref() != Some("pod") {
        needs.push(need(
            "",
            "services",
            &["create", "delete", "get", "list", "watch"],
            "pods get no services",
        ));
    }
    if context.flag_is_on("enable-private-registries") {
        let name = context.flag("registry-auth-secret-name");
        let name = name.unwrap_or_else(|| "auth-secret".to_owned());
        let without = "nodes have no credentials for private registries";
        needs.push(need("", "secrets", &["create"], without));
        needs.push(Need {
            name: Some(name.clone()),
            ..need("", "secrets", &["get", "update"], without)
        });
        needs.push(optional(Need {
            name: Some(name),
            ..need(
                "",
                "secrets",
                &["delete"],
                "a Secret of that name but of another type cannot be replaced",
            )
        }));
    }
    if let Some(name) = context
        .flag("function-pod-template")
        .filter(|it| !it.is_empty())
    {
        needs.push(Need {
            name: Some(name),
            namespace: context.options.runner_namespace.clone(),
            ..need("", "configmaps", &["get"], "the pod template is not read")
        });
    }
    needs
}

// === impl Need ===

impl Need {
    pub(super) fn kind(&self) -> String {
        let mut kind = self.resource.to_owned();
        if !self.group.is_empty() {
            kind = format!("{kind}.{}", self.group);
        }
        if !self.subresource.is_empty() {
            kind = format!("{kind}/{}", self.subresource);
        }
        kind
    }

    /// Returns the commands that grant the verbs.
    pub(super) fn grant(&self, account: Option<&Account>, verbs: &str) -> String {
        let (namespace, kind) = (&self.namespace, self.kind());
        let subresource = match self.subresource {
            "" => String::new(),
            name => format!("-{name}"),
        };
        // The verbs distinguish roles for the same resource: creating a role twice fails.
        let role = format!(
            "function-runner-{}{subresource}-{}",
            self.resource,
            verbs.replace(',', "-")
        );
        let subject = match account {
            Some(Account { namespace, name }) => format!("--serviceaccount={namespace}:{name}"),
            None => "--user=USER".to_owned(),
        };
        let only = match &self.name {
            Some(name) if !verbs.contains("create") => format!(" --resource-name={name}"),
            _ => String::new(),
        };
        format!(
            "kubectl -n {namespace} create role {role} --verb={verbs} --resource={kind}{only}\n\
             kubectl -n {namespace} create rolebinding {role} --role={role} {subject}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_with_complete_commands() {
        let need = Need {
            group: GROUP,
            resource: "functionconfigs",
            subresource: "status",
            name: None,
            verbs: &["patch"],
            namespace: "fns".to_owned(),
            without: "",
            optional: false,
        };
        let account = Account {
            namespace: "porch-system".to_owned(),
            name: "runner".to_owned(),
        };
        assert_eq!(
            need.grant(Some(&account), "patch"),
            "kubectl -n fns create role function-runner-functionconfigs-status-patch --verb=patch \
             --resource=functionconfigs.config.porch.kpt.dev/status\n\
             kubectl -n fns create rolebinding function-runner-functionconfigs-status-patch \
             --role=function-runner-functionconfigs-status-patch --serviceaccount=porch-system:runner"
        );
    }
}
