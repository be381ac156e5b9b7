//! The page in a real browser.

use std::path::Path;
use std::process::Command;

use super::{good, page, two_hundred};

/// Names under which Chromium is installed.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Chromium, if it is on the path.
pub(super) fn chromium() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    NAMES.into_iter().find(runs)
}

/// What a visit showed.
pub(super) struct Seen {
    /// What the console said.
    pub(super) console: Vec<String>,
    /// The document after its scripts have run.
    document: String,
    /// Milliseconds, by the browser's own clock, from the begin of loading until the document and its script had been
    /// read, and until it was laid out.
    pub(super) timing: Option<[f64; 2]>,
}

/// Adds to a page what writes the browser's own measurements into the document.
const MEASURE: &str = "<script>addEventListener('load', () => {\
    document.body.getBoundingClientRect();\
    const [n] = performance.getEntriesByType('navigation');\
    document.documentElement.dataset.timing = [n.domInteractive, performance.now()].join(' ');\
    document.documentElement.dataset.requests = performance.getEntriesByType('resource').length;\
    });</script></body>";

/// Opens a page.
pub(super) fn visit(chromium: &str, folder: &Path, html: &str) -> Seen {
    let file = folder.join("page.html");
    std::fs::write(&file, html.replace("</body>", MEASURE)).unwrap();
    let output = Command::new(chromium)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        .args(["--enable-logging=stderr", "--timeout=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let console = stderr.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    let timing = document.split("data-timing=\"").nth(1).and_then(|rest| rest.split('"').next()).map(|numbers| {
        let mut numbers = numbers.split(' ').map(|number| number.parse().unwrap());
        [(); 2].map(|()| numbers.next().unwrap())
    });
    Seen { console, document, timing }
}

fn found(test: &str) -> Option<&'static str> {
    let found = chromium();
    if found.is_none() {
        eprintln!("SKIPPED {test}: no Chromium on the path");
    }
    found
}

#[test]
fn the_script_runs_without_a_complaint_and_nothing_is_requested() {
    let Some(chromium) = found("the_script_runs_without_a_complaint_and_nothing_is_requested") else {
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = good(root.path());
    let html = page(&results, &plan);
    let Seen { console, document, .. } = visit(chromium, root.path(), &html);
    assert_eq!(console, Vec::<String>::new());
    // The page's policy refuses every request and says so on the console, which was empty: there was none, and the
    // browser counted none. The script reached its last part:
    assert!(document.contains("data-requests=\"0\""), "{document}");
    assert!(document.contains("<button class=\"\" type=\"button\">configuration</button>"), "{document}");

    // What is looked for would be seen: a request that is refused, and an error.
    let bad = html.replace("<main>", "<main><img src=\"file:///nowhere.png\"><script>nothing.at.all</script>");
    let Seen { console, .. } = visit(chromium, root.path(), &bad);
    assert_eq!(console.iter().filter(|line| line.contains("Content Security Policy")).count(), 1, "{console:?}");
    assert!(console.iter().any(|line| line.contains("ReferenceError")), "{console:?}");
}

#[test]
fn every_choice_draws_every_curve_as_the_page_came_with_it() {
    let Some(chromium) = found("every_choice_draws_every_curve_as_the_page_came_with_it") else {
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = good(root.path());
    let html = page(&results, &plan);
    // Goes through all choices and notes what each one draws.
    let walk = "<script>(() => {\
        const seen = [];\
        const names = ['metric', 'along', 'kind', 'range'];\
        const inputs = names.map((name) => Array.from(document.querySelectorAll(`input[name=\"${name}\"]`)));\
        const figure = document.getElementById('curve');\
        const walk = (depth) => {\
          if (depth === names.length) {\
            const lines = Array.from(figure.querySelectorAll('.marks .line'), (line) => line.getAttribute('d'));\
            const bad = lines.some((d) => !d || /NaN|null|undefined|Infinity/.test(d));\
            seen.push(`${lines.length}${bad ? ' bad' : ''} ${figure.querySelectorAll('.tx').length > 1}`);\
            return;\
          }\
          for (const input of inputs[depth]) { input.click(); walk(depth + 1); }\
        };\
        const first = figure.querySelector('.marks .line').getAttribute('d');\
        walk(0);\
        for (const name of ['metric', 'along', 'kind', 'range']) document.querySelector(`input[name=\"${name}\"]`).click();\
        const same = figure.querySelector('.marks .line').getAttribute('d') === first;\
        document.documentElement.dataset.walk = `${seen.length} ${Array.from(new Set(seen)).join(',')} ${same}`;\
        })();</script></body>";
    let drawn = html.split("class=\"line\" d=\"").nth(5).unwrap().split('"').next().unwrap().to_owned();
    let Seen { console, document, .. } = visit(chromium, root.path(), &html.replace("</body>", walk));
    assert_eq!(console, Vec::<String>::new());
    assert!(document.contains("data-walk=\"36 4 true true\""), "{}", &document[..500]);
    // The script draws the curve that the page came with, but for the rounding of its values.
    let script = document.split("class=\"line\" d=\"").nth(5).unwrap().split('"').next().unwrap();
    let numbers =
        |d: &str| -> Vec<f64> { d.trim_start_matches('M').split(' ').map(|number| number.parse().unwrap()).collect() };
    let (ours, theirs) = (numbers(&drawn), numbers(script));
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.iter().zip(&theirs).all(|(a, b)| (a - b).abs() <= 0.3), "{drawn} {script}");
}

#[test]
fn two_hundred_runs_open_quickly() {
    let Some(chromium) = found("two_hundred_runs_open_quickly") else {
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let (plan, results) = two_hundred(root.path());
    let html = page(&results, &plan);
    let seen = visit(chromium, root.path(), &html);
    assert_eq!(seen.console, Vec::<String>::new());
    let [read, laid_out] = seen.timing.expect("the browser's measurements");
    println!("{} bytes: read after {read} ms, laid out after {laid_out} ms", html.len());
    // The aim is 2 s; a machine that is busy with other tests gets more.
    assert!(laid_out < 10_000.0, "{laid_out} ms");
}
