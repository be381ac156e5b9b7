//! The page in a real browser.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::{good, page};

/// Names under which Chromium is installed.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Chromium, if it is on the path.
fn chromium() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    NAMES.into_iter().find(runs)
}

/// What the console said, and the document after its scripts have run.
fn visit(chromium: &str, folder: &Path, html: &str) -> (Vec<String>, String) {
    let file = folder.join("page.html");
    std::fs::write(&file, html).unwrap();
    let output = Command::new(chromium)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let console = stderr.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (console, String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_script_runs_without_a_complaint_and_nothing_is_requested() {
    let Some(chromium) = chromium() else {
        eprintln!("SKIPPED the_script_runs_without_a_complaint_and_nothing_is_requested: no Chromium on the path");
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = good(root.path());
    let html = page(&results, &plan);
    let start = Instant::now();
    let (console, document) = visit(chromium, root.path(), &html);
    println!("opened in {:?}, the browser's start included", start.elapsed());
    assert_eq!(console, Vec::<String>::new());
    // The page's policy refuses every request and says so on the console, which was empty: there was none. The script
    // reached its last part:
    assert!(document.contains("<html lang=\"en\" class=\"js\">"), "{document}");
    assert!(document.contains("<button class=\"\" type=\"button\">configuration</button>"), "{document}");

    // What is looked for would be seen: a request that is refused, and an error.
    let bad = html.replace("<main>", "<main><img src=\"file:///nowhere.png\"><script>nothing.at.all</script>");
    let (console, _) = visit(chromium, root.path(), &bad);
    assert_eq!(console.iter().filter(|line| line.contains("Content Security Policy")).count(), 1, "{console:?}");
    assert!(console.iter().any(|line| line.contains("ReferenceError")), "{console:?}");
}
