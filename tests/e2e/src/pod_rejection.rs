//! An admission policy that rejects all pods of the stage.

use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::{Namespace, Pod},
};
use kube::{
    Api, Resource,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use crate::{Stage, eventually};

/// An active admission policy.
///
/// The stage's namespace owns the policy and is the only one affected, so the policy is deleted
/// with the stage unless it is removed before.
pub struct PodRejection {
    stage: Stage,
}

// === impl PodRejection ===

impl PodRejection {
    /// Rejects every pod with this message, and waits until the policy is active.
    pub async fn create(stage: &Stage, message: &str) -> Self {
        let name = stage.namespace();
        let namespaces: Api<Namespace> = Api::all(stage.client());
        let own = namespaces.get(name).await.expect("the namespace exists");
        let metadata = json!({"name": name, "ownerReferences": [own.owner_ref(&())]});
        let policy = json!({"metadata": metadata, "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"],
                    "operations": ["CREATE"], "resources": ["pods"],
                }],
            },
            "validations": [{"expression": "false", "message": message}],
        }});
        let policy = serde_json::from_value(policy).expect("a policy");
        let binding = json!({"metadata": metadata, "spec": {
            "policyName": name, "validationActions": ["Deny"],
        }});
        let binding = serde_json::from_value(binding).expect("a binding");
        let rejection = Self {
            stage: stage.clone(),
        };
        let create = PostParams::default();
        let made = rejection.policies().create(&create, &policy).await;
        made.expect("the API server accepts the policy");
        let made = rejection.bindings().create(&create, &binding).await;
        made.expect("the API server accepts the binding");
        eventually("a policy in force", async || !rejection.admits_pods().await).await;
        rejection
    }

    /// Deletes the policy, and waits until pods can be created again.
    pub async fn remove(self) {
        let (name, delete) = (self.stage.namespace(), DeleteParams::default());
        let deleted = self.bindings().delete(name, &delete).await;
        deleted.expect("the binding can be deleted");
        let deleted = self.policies().delete(name, &delete).await;
        deleted.expect("the policy can be deleted");
        eventually("no policy in force", async || self.admits_pods().await).await;
    }

    fn policies(&self) -> Api<ValidatingAdmissionPolicy> {
        Api::all(self.stage.client())
    }

    fn bindings(&self) -> Api<ValidatingAdmissionPolicyBinding> {
        Api::all(self.stage.client())
    }

    /// Returns whether a pod would be admitted, by a dry run.
    ///
    /// The API server applies and drops policies some time after it has stored or deleted them.
    async fn admits_pods(&self) -> bool {
        let pod = json!({
            "metadata": {"name": "trial"},
            "spec": {"containers": [{"name": "trial", "image": "trial"}]},
        });
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        self.stage.api().create(&dry, &pod).await.is_ok()
    }
}
