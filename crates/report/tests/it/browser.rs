//! Chromium without a window, driven by its DevTools protocol over a pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What the program is called.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// For the protocol, Chromium reads file 3 and writes file 4. The rest of what it prints is noise.
const SHELL: &str = "exec \"$@\" 3<&0 4>&1 0</dev/null 1>&2 2>/dev/null";

const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one tab. It ends with this value.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    sent: u64,
    /// What went wrong on the page, and whatever it asked the network for.
    pub(crate) complaints: Vec<String>,
    /// Its profile.
    _home: tempfile::TempDir,
}

/// What a reader has.
pub(crate) struct Reader {
    pub(crate) width: u32,
    pub(crate) dark: bool,
    pub(crate) scripts: bool,
}

impl Browser {
    /// `None`, and a line that says so, where there is no Chromium.
    pub(crate) fn open() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let is_there = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).exists());
        let Some(name) = NAMES.into_iter().find(|name| is_there(name)) else {
            println!("skipped: no chromium here (apt-get install chromium)");
            return None;
        };
        let home = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", SHELL, "sh", name, "--headless", "--remote-debugging-pipe"])
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .arg(format!("--user-data-dir={}", home.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser =
            Self { child, to, from, session: None, sent: 0, complaints: Vec::new(), _home: home };
        let tab = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": tab["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", &attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Show `page` to `reader`; how long until it is loaded and its first plots are drawn.
    pub(crate) fn show(&mut self, page: &Path, reader: &Reader) -> Duration {
        let Reader { width, dark, scripts } = reader;
        self.call("Emulation.setScriptExecutionDisabled", &json!({"value": !scripts}));
        let scheme = if *dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": features}));
        self.size(*width, 1000);
        let began = Instant::now();
        self.call("Page.navigate", &json!({"url": format!("file://{}", page.display())}));
        let loaded = |message: &Value| message["method"] == "Page.loadEventFired";
        while !loaded(&self.read()) {}
        if *scripts {
            self.settle();
        }
        began.elapsed()
    }

    fn size(&mut self, width: u32, height: u32) {
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Wait until what is due has been drawn.
    pub(crate) fn settle(&mut self) {
        let two = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))";
        self.eval(two);
    }

    /// Make the window as high as the page, so that every plot is drawn.
    pub(crate) fn whole(&mut self, width: u32) {
        for _ in 0..2 {
            let height = self.eval("document.documentElement.scrollHeight").as_u64().unwrap();
            self.size(width, u32::try_from(height).unwrap().min(16_000));
            self.settle();
        }
    }

    /// What `script` says, once it is known.
    pub(crate) fn eval(&mut self, script: &str) -> Value {
        let how = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &how);
        assert!(answer["exceptionDetails"].is_null(), "{}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// The window as a picture.
    pub(crate) fn picture(&mut self, path: &Path) {
        self.capture(&json!({"format": "png"}), path);
    }

    /// The `element` that a script finds, as a picture.
    pub(crate) fn picture_of(&mut self, element: &str, path: &Path) {
        let place = "(({x, y, width, height}) => ({x, y, width, height, scale: 1}))";
        let clip = self.eval(&format!("{place}(({element}).getBoundingClientRect())"));
        self.capture(&json!({"format": "png", "clip": clip}), path);
    }

    fn capture(&mut self, how: &Value, path: &Path) {
        let picture = self.call("Page.captureScreenshot", how);
        std::fs::write(path, from_base64(picture["data"].as_str().unwrap())).unwrap();
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        let began = Instant::now();
        loop {
            let answer = self.read();
            if answer["id"] == json!(id) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            assert!(began.elapsed() < PATIENCE, "no answer to {method}");
        }
    }

    fn read(&mut self) -> Value {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message).unwrap();
        message.pop();
        let message: Value = serde_json::from_slice(&message).expect("the browser has ended");
        let (method, params) = (message["method"].as_str().unwrap_or(""), &message["params"]);
        let url = params["request"]["url"].as_str().unwrap_or("file:");
        let is_local = url.starts_with("file:") || url.starts_with("data:");
        let is_wrong = match method {
            "Runtime.exceptionThrown" | "Log.entryAdded" => true,
            "Runtime.consoleAPICalled" => params["type"] == "error",
            "Network.requestWillBeSent" => !is_local,
            _ => false,
        };
        if is_wrong {
            self.complaints.push(message.to_string());
        }
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(value).collect();
    let bytes = |four: &[u8]| {
        let bits = four.iter().fold(0u32, |bits, v| bits << 6 | u32::from(*v));
        let bits = bits << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    digits.chunks(4).flat_map(bytes).collect()
}

/// Where axe-core is, fetched by `make page-setup`; `None`, and a line that says so, without it.
pub(crate) fn axe() -> Option<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let axe = root.join("target/page-tools/node_modules/axe-core/axe.min.js");
    let text = std::fs::read_to_string(axe).ok();
    if text.is_none() {
        println!("skipped: no axe-core here (make page-setup)");
    }
    text
}
