//! The ResourceLists of the measurements: Deployments of about half a kilobyte each.

use std::fmt::Write;

use bytes::Bytes;

const HEAD: &str = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: configuration}
  data:
    namespace: measured
items:
";

/// Returns a list of `count` Deployments.
pub(crate) fn of_items(count: usize) -> Bytes {
    let mut list = String::from(HEAD);
    for number in 0..count {
        push_item(&mut list, number);
    }
    list.into()
}

/// Returns a list of at most `size` bytes, and nearly as many.
pub(crate) fn of_bytes(size: usize) -> Bytes {
    let mut list = String::with_capacity(size);
    list.push_str(HEAD);
    let mut number = 0;
    loop {
        let end = list.len();
        push_item(&mut list, number);
        if list.len() > size {
            list.truncate(end);
            return list.into();
        }
        number += 1;
    }
}

fn push_item(list: &mut String, number: usize) {
    // Writing to a string cannot fail.
    let _ = write!(
        list,
        "\
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-{number}
    labels: {{app: web-{number}, tier: front}}
  spec:
    replicas: 3
    selector:
      matchLabels: {{app: web-{number}}}
    template:
      metadata:
        labels: {{app: web-{number}}}
      spec:
        containers:
        - name: server
          image: registry.example.com/web:v1.27.{number}
          ports:
          - containerPort: 8080
          resources:
            requests: {{cpu: 100m, memory: 64Mi}}
            limits: {{memory: 128Mi}}
"
    );
}
