//! A program in C, compiled and run with the library of this build.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
