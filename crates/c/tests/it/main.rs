//! A program in C, compiled and run with the library of this build.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The library, which cargo leaves beside this test.
fn library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    exe.parent().unwrap().to_owned()
}

/// `examples/ping.c` as a program in `dir`, without a warning; `None` without a C compiler.
fn compile(dir: &Path) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = dir.join("ping");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"]).arg(&program);
    cc.arg(here.join("examples/ping.c")).arg("-I").arg(here.join("include"));
    cc.arg("-L").arg(library()).arg("-ltrimline");
    match cc.status() {
        Ok(status) => {
            assert!(status.success(), "{cc:?}");
            Some(program)
        }
        Err(error) => {
            println!("skipped: cc: {error}");
            None
        }
    }
}

fn ping(program: &Path, args: &[&str]) -> Command {
    let mut ping = Command::new(program);
    ping.args(args).env("LD_LIBRARY_PATH", library());
    ping
}

/// Two ports that nobody has just now.
fn ports() -> [String; 2] {
    let sockets = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().to_string())
}

#[test]
fn a_program_in_c_asks_and_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(dir.path()) else { return };
    let [client, server] = ports();
    let serve = ping(&program, &["serve", &client, &server]).stdout(Stdio::piped()).spawn();
    let serve = serve.unwrap();
    for word in ["hello", "", "stop"] {
        let asked = ping(&program, &["ask", &client, &server, word]).output().unwrap();
        assert!(asked.status.success(), "{asked:?}");
        assert_eq!(String::from_utf8(asked.stdout).unwrap(), format!("{word}\n"));
    }
    let served = serve.wait_with_output().unwrap();
    assert!(served.status.success());
    let said = String::from_utf8(served.stdout).unwrap();
    assert_eq!(said, "host 0: hello\nhost 0: \nhost 0: stop\n");
}

#[test]
fn hosts_with_one_key_talk_and_others_do_not() {
    const KEY: &str = "abcdefghijklmnopqrstuvwxyz012345";
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(dir.path()) else { return };
    let [client, server] = ports();
    let mut serve = ping(&program, &["serve", &client, &server]);
    let serve = serve.env("PING_KEY", KEY).stdout(Stdio::piped()).spawn().unwrap();
    let asked = |word: &str, key: Option<&str>| {
        let mut ask = ping(&program, &["ask", &client, &server, word]);
        key.map(|key| ask.env("PING_KEY", key));
        ask.output().unwrap()
    };
    assert!(!asked("keyless", None).status.success());
    for word in ["hello", "stop"] {
        let asked = asked(word, Some(KEY));
        assert!(asked.status.success(), "{asked:?}");
        assert_eq!(String::from_utf8(asked.stdout).unwrap(), format!("{word}\n"));
    }
    let said = String::from_utf8(serve.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(said, "host 0: hello\nhost 0: stop\n");
}

/// `ports` ports in a row that nobody has just now: the first.
fn row(ports: u16) -> u16 {
    let tries = std::iter::repeat_with(|| UdpSocket::bind("127.0.0.1:0").unwrap());
    let starts = tries.map(|socket| socket.local_addr().unwrap().port()).take(1_000);
    let free = |port| UdpSocket::bind(("127.0.0.1", port)).is_ok();
    let mut starts = starts.filter(|&start| start < u16::MAX - ports);
    starts.find(|&start| (start..start + ports).all(free)).unwrap()
}

#[test]
fn packets_leave_from_as_many_ports_as_are_wanted() {
    const PORTS: u16 = 4;
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(dir.path()) else { return };
    let client = row(PORTS);
    // Nobody who answers, but who sees from where a request of fifty packets comes.
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let at = [format!("127.0.0.1:{client}"), server.local_addr().unwrap().to_string()];
    let ask = || {
        let mut ask = ping(&program, &["ask", &at[0], &at[1], &"x".repeat(50 * 1_200)]);
        ask.env("PING_PORTS", PORTS.to_string());
        ask
    };
    let mut asking = ask().stderr(Stdio::null()).spawn().unwrap();
    let looks = std::iter::repeat_with(|| server.recv_from(&mut [0; 2_000])).take(50);
    let from = looks.skip_while(Result::is_err).map_while(Result::ok).take(8);
    let from: BTreeSet<u16> = from.map(|(_, from)| from.port()).collect();
    asking.kill().unwrap();
    asking.wait().unwrap();
    assert!(
        from.len() > 1 && from.iter().all(|p| (client..client + PORTS).contains(p)),
        "{from:?}"
    );
    // Each of them has to be free.
    let _taken = UdpSocket::bind(("127.0.0.1", client + 2)).unwrap();
    let refused = String::from_utf8(ask().output().unwrap().stderr).unwrap();
    assert!(refused.contains("of 4 source ports"), "{refused}");
}

#[test]
fn what_is_wrong_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(dir.path()) else { return };
    let refused = |args: &[&str]| {
        let output = ping(&program, args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let error = refused(&["ask", "nowhere", "127.0.0.1:1"]);
    assert!(error.contains("\"nowhere\" is no address and port"), "{error}");
    let [client, server] = ports();
    let taken = UdpSocket::bind(&client).unwrap();
    let error = refused(&["ask", &client, &server]);
    assert!(error.contains(&format!("cannot listen at {client}")), "{error}");
    drop(taken);
}

/// Every function of the library stands in the header, and the other way round.
#[test]
fn the_header_is_complete() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(here.join("include/trimline.h")).unwrap();
    let source = std::fs::read_to_string(here.join("src/lib.rs")).unwrap();
    let names = |text: &str, before: &str| {
        let parts = text.split(before).skip(1);
        let mut names: Vec<String> = parts
            .filter_map(|part| part.split_once('('))
            .map(|(name, _)| name.trim_start_matches('*').to_owned())
            .collect();
        names.sort();
        names
    };
    let functions = names(&source, "extern \"C\" fn ");
    let declared: Vec<String> = {
        let code = header.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, c)| c));
        let code: String = code.collect();
        let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '('));
        let mut names: Vec<String> = words
            .filter_map(|word| word.split_once('('))
            .map(|(name, _)| name.to_owned())
            .filter(|name| name.starts_with("trimline_"))
            .collect();
        names.sort();
        names
    };
    assert_eq!(functions, declared);
    assert_eq!(functions.len(), 15);
}
