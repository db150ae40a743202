//! The panels of the dashboard, in order of use: health first, then latency, then its causes.

/// A row of the dashboard: a heading and the panels below it.
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: &'static [Panel],
}

/// A graph of one or more PromQL expressions.
pub(super) struct Panel {
    pub(super) title: &'static str,
    /// Text that Grafana shows beside the title.
    pub(super) description: &'static str,
    /// Unit of the values, by its name in Grafana.
    pub(super) unit: &'static str,
    /// PromQL expressions, each with its legend.
    pub(super) lines: &'static [(&'static str, &'static str)],
}

const RATE: &str = "ops";
const SECONDS: &str = "s";
const COUNT: &str = "short";

pub(super) const ROWS: &[Row] = &[
    Row {
        title: "Evaluations",
        panels: &[
            Panel {
                title: "Evaluations by outcome",
                description: "Evaluations per second: ok, or the reason that the caller gets. docs/troubleshooting.md explains each reason.",
                unit: RATE,
                lines: &[(
                    "sum by (outcome) (rate(function_runner_evaluations_total[$__rate_interval]))",
                    "{{outcome}}",
                )],
            },
            Panel {
                title: "Duration of evaluations",
                description: "Time from the arrival of a request to its answer.",
                unit: SECONDS,
                lines: &[
                    (
                        "histogram_quantile(0.5, sum by (le, runtime) (rate(function_runner_evaluation_duration_seconds_bucket[$__rate_interval])))",
                        "{{runtime}} median",
                    ),
                    (
                        "histogram_quantile(0.99, sum by (le, runtime) (rate(function_runner_evaluation_duration_seconds_bucket[$__rate_interval])))",
                        "{{runtime}} 99%",
                    ),
                ],
            },
            Panel {
                title: "Busiest functions",
                description: "Evaluations per second of the ten functions that are called most.",
                unit: RATE,
                lines: &[(
                    "topk(10, sum by (function) (rate(function_runner_evaluations_total[$__rate_interval])))",
                    "{{function}}",
                )],
            },
            Panel {
                title: "Resource lists",
                description: "Bytes per second of resource lists received (in) and returned (out).",
                unit: "Bps",
                lines: &[(
                    "sum by (direction) (rate(function_runner_bytes_total[$__rate_interval]))",
                    "{{direction}}",
                )],
            },
        ],
    },
    Row {
        title: "Processes (exec)",
        panels: &[
            Panel {
                title: "Running and queued",
                description: "Function processes, and evaluations that wait for a permit. A queue that stays long means too few cores.",
                unit: COUNT,
                lines: &[
                    ("sum(function_runner_running)", "running"),
                    ("sum(function_runner_queued)", "queued"),
                ],
            },
            Panel {
                title: "Time in the queue",
                description: "Time that evaluations waited for a permit to run a process.",
                unit: SECONDS,
                lines: &[(
                    "histogram_quantile(0.99, sum by (le) (rate(function_runner_queue_wait_seconds_bucket[$__rate_interval])))",
                    "99%",
                )],
            },
            Panel {
                title: "Standby",
                description: "Evaluations that used a standby, evaluations that had to start a process, and programs whose standby was turned off because a process ended or wrote before its input arrived.",
                unit: RATE,
                lines: &[
                    (
                        "sum(rate(function_runner_standby_hits_total[$__rate_interval]))",
                        "standby used",
                    ),
                    (
                        "sum(rate(function_runner_standby_misses_total[$__rate_interval]))",
                        "process started",
                    ),
                    (
                        "sum(rate(function_runner_standby_suspensions_total[$__rate_interval]))",
                        "standby turned off",
                    ),
                ],
            },
        ],
    },
    Row {
        title: "Pods",
        panels: &[
            Panel {
                title: "Pods by state",
                description: "Pods that the replicas observe. Replicas share pods, so the highest count of all replicas is shown.",
                unit: COUNT,
                lines: &[("max by (state) (function_runner_pods)", "{{state}}")],
            },
            Panel {
                title: "Evaluations waiting for a pod",
                description: "Evaluations that wait for a pod of their function.",
                unit: COUNT,
                lines: &[("sum(function_runner_pods_waiting)", "waiting")],
            },
            Panel {
                title: "Pod start by phase",
                description: "Time from the request for a pod to each phase of its start, 90th percentile.",
                unit: SECONDS,
                lines: &[(
                    "histogram_quantile(0.9, sum by (le, phase) (rate(function_runner_pod_start_duration_seconds_bucket[$__rate_interval])))",
                    "{{phase}}",
                )],
            },
            Panel {
                title: "Pods created and deleted",
                description: "Pods deleted as idle are normal. Pods deleted as failed or too_slow need attention.",
                unit: RATE,
                lines: &[
                    (
                        "sum(rate(function_runner_pods_created_total[$__rate_interval]))",
                        "created",
                    ),
                    (
                        "sum by (why) (rate(function_runner_pods_deleted_total[$__rate_interval]))",
                        "deleted: {{why}}",
                    ),
                ],
            },
            Panel {
                title: "Failed starts and lost calls",
                description: "Pods that the API server did not accept, and calls to a pod that got no answer.",
                unit: RATE,
                lines: &[
                    (
                        "sum(rate(function_runner_pods_start_failures_total[$__rate_interval]))",
                        "failed starts",
                    ),
                    (
                        "sum(rate(function_runner_pods_lost_calls_total[$__rate_interval]))",
                        "lost calls",
                    ),
                ],
            },
            Panel {
                title: "Announcements",
                description: "Announcements of wrappers. If there are none while pods are created, a network policy or a service mesh blocks the announce port, and cold starts take 1 s longer.",
                unit: RATE,
                lines: &[(
                    "sum by (outcome) (rate(function_runner_pods_announcements_total[$__rate_interval]))",
                    "{{outcome}}",
                )],
            },
            Panel {
                title: "Wrapper injection",
                description: "Number of replicas by the way in which the wrapper gets into new pods, and the reason for it. image is the fastest way, init the slowest.",
                unit: COUNT,
                lines: &[(
                    "sum by (injection, reason) (function_runner_wrapper_injection)",
                    "{{injection}}: {{reason}}",
                )],
            },
        ],
    },
    Row {
        title: "Registries",
        panels: &[
            Panel {
                title: "Image lookups",
                description: "hit, stale and failure are answered from the cache; miss waits for the registry.",
                unit: RATE,
                lines: &[(
                    "sum by (result) (rate(function_runner_registry_lookups_total[$__rate_interval]))",
                    "{{result}}",
                )],
            },
            Panel {
                title: "Requests to registries",
                description: "Requests by HTTP status, and requests that were repeated.",
                unit: RATE,
                lines: &[
                    (
                        "sum by (registry, status) (rate(function_runner_registry_requests_total[$__rate_interval]))",
                        "{{registry}} {{status}}",
                    ),
                    (
                        "sum by (registry) (rate(function_runner_registry_retries_total[$__rate_interval]))",
                        "{{registry}} repeated",
                    ),
                ],
            },
            Panel {
                title: "Duration of requests",
                description: "Time until the complete answer of the registry was received.",
                unit: SECONDS,
                lines: &[(
                    "histogram_quantile(0.9, sum by (le, registry) (rate(function_runner_registry_request_duration_seconds_bucket[$__rate_interval])))",
                    "{{registry}} 90%",
                )],
            },
            Panel {
                title: "Lookup errors",
                description: "Failed lookups by kind, and times that the custom CA could not be used.",
                unit: RATE,
                lines: &[
                    (
                        "sum by (kind) (rate(function_runner_registry_errors_total[$__rate_interval]))",
                        "{{kind}}",
                    ),
                    (
                        "sum(rate(function_runner_registry_ca_fallbacks_total[$__rate_interval]))",
                        "custom CA unusable",
                    ),
                ],
            },
            Panel {
                title: "Moved tags",
                description: "Tags that point at another image than before. Pods of the old image are replaced.",
                unit: COUNT,
                lines: &[(
                    "sum(increase(function_runner_registry_tags_moved_total[$__rate_interval]))",
                    "moved",
                )],
            },
        ],
    },
    Row {
        title: "Configuration",
        panels: &[
            Panel {
                title: "Reloads",
                description: "Changes of the configuration that were read. If one is rejected, the last valid configuration stays in use.",
                unit: COUNT,
                lines: &[(
                    "sum by (source, outcome) (increase(function_runner_config_reloads_total[$__rate_interval]))",
                    "{{source}} {{outcome}}",
                )],
            },
            Panel {
                title: "Configuration problems",
                description: "Current problems of the configuration. `krm functions` lists them.",
                unit: COUNT,
                lines: &[(
                    "max by (source, severity) (function_runner_config_problems)",
                    "{{source}} {{severity}}",
                )],
            },
        ],
    },
];
