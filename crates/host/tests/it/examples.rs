//! The programs of `examples/`, each with its two or more ends.

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

#[allow(dead_code)]
#[path = "../../examples/copy.rs"]
mod copy;
#[allow(dead_code)]
#[path = "../../examples/query.rs"]
mod query;
#[allow(dead_code)]
#[path = "../../examples/store.rs"]
mod store;

/// Two addresses that are free now.
fn addresses() -> [String; 2] {
    let sockets = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().to_string())
}

fn file(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("examples");
    fs::create_dir_all(&dir).unwrap();
    dir.join(format!("{name}-{}", std::process::id()))
}

#[test]
fn a_file_is_copied() {
    let [from, to] = [file("from"), file("to")];
    let bytes: Vec<u8> = (0..5_000_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    fs::write(&from, &bytes).unwrap();
    let [a, b] = addresses();
    let receiver = {
        let (to, a, b) = (to.clone(), a.clone(), b.clone());
        thread::spawn(move || {
            copy::copy(&["receive", to.to_str().unwrap(), &b, &a]).map_err(|e| e.to_string())
        })
    };
    assert_eq!(copy::copy(&["send", from.to_str().unwrap(), &a, &b]).unwrap(), 5_000_000);
    assert_eq!(receiver.join().unwrap(), Ok(5_000_000));
    assert!(fs::read(&to).unwrap() == bytes);
    fs::remove_file(from).unwrap();
    fs::remove_file(to).unwrap();
    assert!(copy::copy(&["send", "/nowhere", &a, &b]).is_err());
}

#[test]
fn values_are_kept() {
    let [a, b] = addresses();
    let server = {
        let (a, b) = (a.clone(), b.clone());
        thread::spawn(move || store::store(&["serve", &b, &a]).map_err(|e| e.to_string()))
    };
    let ask = |words: &[&str]| {
        let mut args = vec![words[0], &a, &b];
        args.extend(&words[1..]);
        store::store(&args).unwrap()
    };
    assert_eq!(ask(&["get", "colour"]), "no such key");
    assert_eq!(ask(&["put", "colour", "blue"]), "stored");
    assert_eq!(ask(&["put", "colour", "red"]), "replaced");
    assert_eq!(ask(&["get", "colour"]), "red");
    assert_eq!(ask(&["stop"]), "stopped");
    assert_eq!(server.join().unwrap(), Ok("1 keys".to_owned()));
    assert!(store::store(&["put", &a, &b, "a key alone"]).is_err());
}

#[test]
fn a_query_adds_up_what_its_workers_hold() {
    let (sum, in_time) = query::query(6, 100_000, Duration::from_secs(10)).unwrap();
    assert_eq!((sum, in_time), (100_000 * 99_999 / 2, 6));
}
