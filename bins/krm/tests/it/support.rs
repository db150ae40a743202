//! A runner with a function defined by the test, and the command run against it.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use runner_proto::evaluator::{
    EvaluateFunctionRequest, EvaluateFunctionResponse,
    function_evaluator_server::{FunctionEvaluator, FunctionEvaluatorServer},
};
use tempfile::TempDir;
use tokio::{net::TcpListener, runtime::Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status,
    transport::{Server, ServerTlsConfig},
};

type Answer = dyn Fn(&str) -> Result<EvaluateFunctionResponse, Status> + Send + Sync;

/// The behaviour of a test's function.
pub enum Function {
    /// The function answers at once.
    Answers(Box<Answer>),
    /// The function never answers.
    Hangs,
}

/// A server that stops when dropped.
pub struct Runner {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<EvaluateFunctionRequest>>>,
    runtime: Option<Runtime>,
}

struct Service {
    function: Function,
    seen: Arc<Mutex<Vec<EvaluateFunctionRequest>>>,
}

/// A package in its own temporary directory.
pub struct Package(TempDir);

/// The exit code and the output of the command.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

// === impl Function ===

impl Function {
    /// Returns a function that rewrites the text of the list.
    pub fn edits(edit: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::Answers(Box::new(move |list| {
            let resource_list = Bytes::from(edit(list));
            Ok(EvaluateFunctionResponse {
                resource_list,
                log: Bytes::new(),
            })
        }))
    }

    pub fn identity() -> Self {
        Self::edits(str::to_owned)
    }

    pub fn fails(status: impl Fn() -> Status + Send + Sync + 'static) -> Self {
        Self::Answers(Box::new(move |_| Err(status())))
    }
}

// === impl Runner ===

impl Runner {
    pub fn start(function: Function) -> Self {
        Self::serve(function, Server::builder())
    }

    pub fn start_with_tls(function: Function, tls: ServerTlsConfig) -> Self {
        Self::serve(function, Server::builder().tls_config(tls).unwrap())
    }

    fn serve(function: Function, mut server: Server) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::default();
        let service = Service {
            function,
            seen: Arc::clone(&seen),
        };
        let limit = 64 << 20;
        let service = FunctionEvaluatorServer::new(service)
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit);
        let incoming = TcpListenerStream::new(listener);
        runtime.spawn(server.add_service(service).serve_with_incoming(incoming));
        Self {
            address,
            seen,
            runtime: Some(runtime),
        }
    }

    /// Returns the only request received.
    pub fn request(&self) -> EvaluateFunctionRequest {
        let mut seen = self.seen.lock().unwrap();
        assert_eq!(seen.len(), 1, "one request expected");
        seen.remove(0)
    }

    /// Returns the ResourceList of the only request received.
    pub fn list(&self) -> String {
        String::from_utf8(self.request().resource_list.to_vec()).unwrap()
    }

    /// Runs `krm eval` against this runner.
    pub fn eval(&self, arguments: &[&str]) -> Run {
        self.eval_with_input(arguments, "")
    }

    pub fn eval_with_input(&self, arguments: &[&str], input: &str) -> Run {
        let address = self.address.to_string();
        let mut all = vec![
            "eval",
            "--image",
            "example.com/fn:v1",
            "--address",
            &address,
        ];
        all.extend(arguments);
        krm(&all, input)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[tonic::async_trait]
impl FunctionEvaluator for Service {
    async fn evaluate_function(
        &self,
        request: Request<EvaluateFunctionRequest>,
    ) -> Result<Response<EvaluateFunctionResponse>, Status> {
        let request = request.into_inner();
        let list = String::from_utf8(request.resource_list.to_vec()).unwrap();
        self.seen.lock().unwrap().push(request);
        match &self.function {
            Function::Hangs => std::future::pending().await,
            Function::Answers(answer) => answer(&list).map(Response::new),
        }
    }
}

// === impl Package ===

impl Package {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(directory)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn arg(&self) -> &str {
        self.path().to_str().unwrap()
    }

    /// Returns the content of every file, by path.
    pub fn files(&self) -> BTreeMap<String, String> {
        fn walk(root: &Path, directory: &Path, files: &mut BTreeMap<String, String>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path: PathBuf = entry.unwrap().path();
                if path.is_dir() {
                    walk(root, &path, files);
                } else {
                    let name = path
                        .strip_prefix(root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned();
                    files.insert(name, fs::read_to_string(&path).unwrap());
                }
            }
        }
        let mut files = BTreeMap::new();
        walk(self.path(), self.path(), &mut files);
        files
    }
}

/// Runs the command to its end, without colours.
pub fn krm(arguments: &[&str], input: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_krm"))
        .args(arguments)
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "100")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    // A command that does not read its input closes it, which is not a failure of the test.
    let _ = feeder.join().unwrap();
    Run {
        code: status.code().expect("the command ends by itself"),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// A resource as people write them, with comments, a blank line and YAML 1.1 scalars.
pub const DEPLOYMENT: &str = "\
# Serves the shop's pages.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # do not rename
  labels: {app: web}
spec:
  replicas: 3   # for the weekend

  paused: no
  template:
    spec:
      containers:
        - name: nginx
          image: 'nginx:1.27'
      volumes:
        - name: scripts
          configMap:
            defaultMode: 0755
";
pub const SERVICES: &str = "\
apiVersion: v1
kind: Service
metadata:
  name: one
---
# The second.
apiVersion: v1
kind: Service
metadata: {name: two}
";
