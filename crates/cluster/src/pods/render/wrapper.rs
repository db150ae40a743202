//! Adds the wrapper and the data for its announcement to a pod.

use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, ExecAction, ImageVolumeSource, LifecycleHandler,
    ObjectFieldSelector, PodSpec, Volume,
};
use runner_core::environment;

use super::{AnnounceTarget, Injection, RenderOptions, image::set_image};
use crate::names::{COPY_CONTAINER, FUNCTION_CONTAINER, TOOLS, TOOLS_DIR, WRAPPER_HOME};

/// Sets the wrapper's image in the container that copies it, or mounts the image instead.
pub(super) fn inject(spec: &mut PodSpec, options: &RenderOptions) {
    match options.injection {
        Injection::Init | Injection::Container => {
            for container in spec.init_containers.iter_mut().flatten() {
                if container.name == COPY_CONTAINER {
                    set_image(container, &options.wrapper_image);
                }
            }
        }
        Injection::Image => mount(spec, &options.wrapper_image),
    }
}

/// Makes the init container that copies the wrapper the first of the pod's containers.
///
/// The kubelet notices the end of an init container only in its next round, up to 1 s later. It
/// starts ordinary containers one after the other without such a pause, each as soon as the
/// `postStart` hook of the previous one is done. So the copy command becomes the hook of a
/// container that does nothing else.
pub(super) fn copy_in_container(spec: &mut PodSpec) {
    let init = spec.init_containers.get_or_insert_default();
    let copying = init.extract_if(.., |container| {
        container.name == COPY_CONTAINER && container.command.is_some()
    });
    let beside = copying.map(|mut container| {
        let mut copy = container.command.take().unwrap_or_default();
        copy.extend(container.args.take().unwrap_or_default());
        container.restart_policy = None;
        container.command = Some(vec![
            format!("{WRAPPER_HOME}/wrapper-server"),
            "hold".to_owned(),
        ]);
        container.lifecycle.get_or_insert_default().post_start = Some(LifecycleHandler {
            exec: Some(ExecAction {
                command: Some(copy),
            }),
            ..LifecycleHandler::default()
        });
        container
    });
    spec.containers.splice(0..0, beside);
}

/// Replaces the init container and its volume by a volume with the wrapper's image.
fn mount(spec: &mut PodSpec, image: &str) {
    if let Some(containers) = &mut spec.init_containers {
        containers.retain(|container| container.name != COPY_CONTAINER);
    }
    let volumes = spec.volumes.get_or_insert_default();
    volumes.retain(|volume| volume.name != TOOLS);
    volumes.push(Volume {
        name: TOOLS.to_owned(),
        image: Some(ImageVolumeSource {
            reference: Some(image.to_owned()),
            ..ImageVolumeSource::default()
        }),
        ..Volume::default()
    });
    // The whole image is mounted: programs that the template expects directly in the tools
    // directory are in a subdirectory.
    for container in &mut spec.containers {
        if container.name != FUNCTION_CONTAINER {
            continue;
        }
        let probes = [
            &mut container.readiness_probe,
            &mut container.liveness_probe,
            &mut container.startup_probe,
        ];
        let commands = probes
            .into_iter()
            .filter_map(|probe| probe.as_mut()?.exec.as_mut()?.command.as_mut());
        for word in commands.chain(container.command.as_mut()).flatten() {
            if let Some(program) = word.strip_prefix(TOOLS_DIR) {
                *word = format!("{TOOLS_DIR}{WRAPPER_HOME}{program}");
            }
        }
    }
}

/// Sets the environment variables for the wrapper's announcement.
///
/// The wrapper removes them from the function's environment.
pub(super) fn set_announcement(container: &mut Container, slot: &str, announce: &AnnounceTarget) {
    let value = |name: &str, value: &str| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        ..EnvVar::default()
    };
    let address = EnvVar {
        name: environment::WRAPPER_POD_ADDRESS.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: "status.podIP".to_owned(),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    };
    container.env.get_or_insert_default().extend([
        value(environment::WRAPPER_RUNNER, &announce.runner),
        value(environment::WRAPPER_SLOT, slot),
        value(environment::WRAPPER_TOKEN, &announce.token),
        address,
    ]);
}
