//! The panels of the dashboard, in order of use: health first, then latency, then its causes.

/// A heading and the panels below it.
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: &'static [Panel],
}

/// One graph.
pub(super) struct Panel {
    pub(super) title: &'static str,
    /// Description of the panel, which explains the graph.
    pub(super) description: &'static str,
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
                description: "Everything but ok is the reason that callers see; docs/troubleshooting.md explains each.",
                unit: RATE,
                lines: &[(
                    "sum by (outcome) (rate(function_runner_evaluations_total[$__rate_interval]))",
                    "{{outcome}}",
                )],
            },
            Panel {
                title: "Latency",
                description: "From arrival to answer.",
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
                description: "Evaluations of the ten most called.",
                unit: RATE,
                lines: &[(
                    "topk(10, sum by (function) (rate(function_runner_evaluations_total[$__rate_interval])))",
                    "{{function}}",
                )],
            },
            Panel {
                title: "Resource lists",
                description: "Bytes received and returned.",
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
                description: "A queue that does not empty: too few cores.",
                unit: COUNT,
                lines: &[
                    ("sum(function_runner_running)", "running"),
                    ("sum(function_runner_queued)", "queued"),
                ],
            },
            Panel {
                title: "Wait for a place",
                description: "Time spent waiting for a free core.",
                unit: SECONDS,
                lines: &[(
                    "histogram_quantile(0.99, sum by (le) (rate(function_runner_queue_wait_seconds_bucket[$__rate_interval])))",
                    "99%",
                )],
            },
            Panel {
                title: "Standby",
                description: "Evaluations that found a process waiting for them, those that had to start one, and functions that lost standby because they acted before their input arrived.",
                unit: RATE,
                lines: &[
                    (
                        "sum(rate(function_runner_standby_hits_total[$__rate_interval]))",
                        "found",
                    ),
                    (
                        "sum(rate(function_runner_standby_misses_total[$__rate_interval]))",
                        "started",
                    ),
                    (
                        "sum(rate(function_runner_standby_suspensions_total[$__rate_interval]))",
                        "turned off",
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
                description: "As each replica knows them; replicas share pods, so the highest count is shown.",
                unit: COUNT,
                lines: &[("max by (state) (function_runner_pods)", "{{state}}")],
            },
            Panel {
                title: "Waiting for a pod",
                description: "Evaluations that no pod has taken yet.",
                unit: COUNT,
                lines: &[("sum(function_runner_pods_waiting)", "waiting")],
            },
            Panel {
                title: "Cold start by phase",
                description: "The 90th percentile from asking for a pod to each step of its start.",
                unit: SECONDS,
                lines: &[(
                    "histogram_quantile(0.9, sum by (le, phase) (rate(function_runner_pod_start_duration_seconds_bucket[$__rate_interval])))",
                    "{{phase}}",
                )],
            },
            Panel {
                title: "Created and removed",
                description: "Removed for being idle is housekeeping; failed and too_slow are not.",
                unit: RATE,
                lines: &[
                    (
                        "sum(rate(function_runner_pods_created_total[$__rate_interval]))",
                        "created",
                    ),
                    (
                        "sum by (why) (rate(function_runner_pods_deleted_total[$__rate_interval]))",
                        "removed: {{why}}",
                    ),
                ],
            },
            Panel {
                title: "Trouble",
                description: "Pods that were not taken by the API server, and calls whose pod did not answer.",
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
                title: "Calls home",
                description: "None at all while pods are created: a policy or mesh keeps them from the announce port, and cold starts take a second longer.",
                unit: RATE,
                lines: &[(
                    "sum by (outcome) (rate(function_runner_pods_announcements_total[$__rate_interval]))",
                    "{{outcome}}",
                )],
            },
            Panel {
                title: "Wrapper injection",
                description: "Replicas by the way in which the wrapper gets into their new pods, and the reason. image is the fastest, init the slowest.",
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
                title: "Lookups",
                description: "hit and stale cost nobody any time.",
                unit: RATE,
                lines: &[(
                    "sum by (result) (rate(function_runner_registry_lookups_total[$__rate_interval]))",
                    "{{result}}",
                )],
            },
            Panel {
                title: "Requests",
                description: "What registries answered, and what was tried again.",
                unit: RATE,
                lines: &[
                    (
                        "sum by (registry, status) (rate(function_runner_registry_requests_total[$__rate_interval]))",
                        "{{registry}} {{status}}",
                    ),
                    (
                        "sum by (registry) (rate(function_runner_registry_retries_total[$__rate_interval]))",
                        "{{registry}} again",
                    ),
                ],
            },
            Panel {
                title: "Request latency",
                description: "Until the whole answer was there.",
                unit: SECONDS,
                lines: &[(
                    "histogram_quantile(0.9, sum by (le, registry) (rate(function_runner_registry_request_duration_seconds_bucket[$__rate_interval])))",
                    "{{registry}} 90%",
                )],
            },
            Panel {
                title: "Errors",
                description: "Lookups that failed, and times the custom authority could not be used.",
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
                title: "Tags that moved",
                description: "A tag that points at another image than before: pods of the old one are replaced.",
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
                description: "rejected: the last good configuration stays in use.",
                unit: COUNT,
                lines: &[(
                    "sum by (source, outcome) (increase(function_runner_config_reloads_total[$__rate_interval]))",
                    "{{source}} {{outcome}}",
                )],
            },
            Panel {
                title: "Problems",
                description: "What is wrong now; krm functions lists them.",
                unit: COUNT,
                lines: &[(
                    "max by (source, severity) (function_runner_config_problems)",
                    "{{source}} {{severity}}",
                )],
            },
        ],
    },
];
