//! Finds CUDA's libraries on the machine at hand.
//!
//! Hosts differ: a driver alone, a toolkit under /usr/local, a Python package's folder, a container's mount. A library
//! is therefore looked for by name (the loader's cache and default folders) and in every usual folder, whatever its
//! version suffix; an error lists all places.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

/// Environment variable with folders (or library files), separated by colons, that are searched first.
pub const PATH_VARIABLE: &str = "DIESWEEP_CUDA_PATH";

/// A library of CUDA's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The driver, libcuda.
    Driver,
    /// The run-time compiler, libnvrtc.
    Nvrtc,
    /// The management library, libnvidia-ml.
    Nvml,
}

impl Wanted {
    /// Start of the library's file name, up to and including `.so`.
    pub const fn stem(self) -> &'static str {
        match self {
            Self::Driver => "libcuda.so",
            Self::Nvrtc => "libnvrtc.so",
            Self::Nvml => "libnvidia-ml.so",
        }
    }

    /// Names that the loader is asked for, best first.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Driver => &["libcuda.so.1", "libcuda.so"],
            Self::Nvrtc => &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"],
            Self::Nvml => &["libnvidia-ml.so.1", "libnvidia-ml.so"],
        }
    }
}

/// What the search reads of the machine: its environment and its file system below a root.
pub struct Host<'a> {
    /// Looks up an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// Root of the file system, `/` but in tests.
    pub root: PathBuf,
}

impl Host<'static> {
    /// The machine that this process runs on.
    pub fn this() -> Self {
        Self { env: &|name| std::env::var_os(name), root: PathBuf::from("/") }
    }
}

/// Something to hand to the loader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Candidate {
    /// A bare name, found by the loader in its cache and default folders.
    Name(String),
    /// A file that exists.
    File(PathBuf),
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// No usable library was found.
#[derive(Debug, thiserror::Error)]
#[error("no usable {} found; looked for it{}", .wanted.stem(), list(.tried))]
pub struct NotFound {
    wanted: Wanted,
    tried: Vec<String>,
}

fn list(tried: &[String]) -> String {
    tried.iter().map(|place| format!("\n  {place}")).collect()
}

impl NotFound {
    /// An error that lists the places tried, one a line.
    pub(super) fn new(wanted: Wanted, mut tried: Vec<String>) -> Self {
        tried.push(format!("(set {PATH_VARIABLE} to the folder that holds it)"));
        Self { wanted, tried }
    }

    /// The places tried, in order.
    pub fn tried(&self) -> &[String] {
        &self.tried
    }
}

/// Where to look for `wanted`, in order, and the words for an error that lists it all.
pub fn search(host: &Host<'_>, wanted: Wanted) -> (Vec<Candidate>, Vec<String>) {
    let mut found = Vec::new();
    let mut looked = Vec::new();
    let named = own_path(host, wanted, &mut found);
    if !named.is_empty() {
        looked.push(format!("in {PATH_VARIABLE}: {}", join(&named)));
    }
    let names = wanted.names();
    found.extend(names.iter().map(|&n| Candidate::Name(n.to_owned())));
    looked.push(format!("by the loader as {}", names.join(", ")));
    let folders = usual_folders(host);
    for folder in &folders {
        found.extend(libraries_in(folder, wanted).map(Candidate::File));
    }
    looked.extend(folders.iter().map(|f| format!("in {}", f.display())));
    let mut seen = HashSet::new();
    found.retain(|candidate| seen.insert(candidate.clone()));
    (found, looked)
}

/// The folders and files of [`PATH_VARIABLE`]; libraries in them go to `found`.
fn own_path(host: &Host<'_>, wanted: Wanted, found: &mut Vec<Candidate>) -> Vec<PathBuf> {
    let Some(value) = (host.env)(PATH_VARIABLE) else {
        return Vec::new();
    };
    let mut places = Vec::new();
    for entry in std::env::split_paths(&value).filter(|e| !e.as_os_str().is_empty()) {
        if is_library(&entry, wanted) && entry.is_file() {
            found.push(Candidate::File(entry.clone()));
        }
        for folder in [entry.clone(), entry.join("lib64"), entry.join("lib")] {
            found.extend(libraries_in(&folder, wanted).map(Candidate::File));
        }
        places.push(entry);
    }
    places
}

fn join(paths: &[PathBuf]) -> String {
    let texts: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    texts.join(", ")
}

/// Every folder that exists and in which drivers, toolkits and Python packages put their libraries.
fn usual_folders(host: &Host<'_>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(value) = (host.env)("LD_LIBRARY_PATH") {
        folders.extend(std::env::split_paths(&value));
    }
    for variable in ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"] {
        if let Some(home) = (host.env)(variable) {
            folders.push(Path::new(&home).join("lib64"));
        }
    }
    for parent in ["usr/local", "opt", "opt/nvidia"] {
        for toolkit in children(&host.root.join(parent), "cuda") {
            folders.push(toolkit.join("lib64"));
            folders.push(toolkit.join("targets/x86_64-linux/lib"));
        }
    }
    for fixed in [
        "usr/lib/x86_64-linux-gnu",
        "usr/lib/aarch64-linux-gnu",
        "usr/lib64",
        "usr/lib",
        "usr/local/nvidia/lib64",
        "usr/local/nvidia/lib",
        "usr/lib/wsl/lib",
        "run/opengl-driver/lib",
    ] {
        folders.push(host.root.join(fixed));
    }
    for packages in python_packages(host) {
        for nvidia in children(&packages.join("nvidia"), "") {
            folders.push(nvidia.join("lib"));
        }
    }
    let mut seen = HashSet::new();
    folders.retain(|folder| folder.is_dir() && seen.insert(folder.clone()));
    folders
}

/// Folders of installed Python packages: of the environments at hand, the user and the system.
fn python_packages(host: &Host<'_>) -> Vec<PathBuf> {
    let mut prefixes = Vec::new();
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend((host.env)(variable).map(PathBuf::from));
    }
    // The interpreter that `python3` means here, both as named (a virtual environment) and as resolved.
    if let Some(path) = (host.env)("PATH") {
        let python = std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|file| file.is_file());
        for file in python.iter().flat_map(|p| [Some(p.clone()), p.canonicalize().ok()]) {
            let prefix = file.as_deref().and_then(Path::parent).and_then(Path::parent);
            prefixes.extend(prefix.map(Path::to_path_buf));
        }
    }
    if let Some(home) = (host.env)("HOME") {
        prefixes.push(Path::new(&home).join(".local"));
    }
    prefixes.push(host.root.join("usr/local"));
    prefixes.push(host.root.join("usr"));
    let mut packages = Vec::new();
    for prefix in prefixes {
        for version in children(&prefix.join("lib"), "python3") {
            packages.push(version.join("site-packages"));
            packages.push(version.join("dist-packages"));
        }
    }
    packages
}

/// Entries of a folder whose name begins with `start`, later versions first. A folder that cannot be read has none.
fn children(folder: &Path, start: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| entry.path())
        .collect();
    paths.sort_by_key(|path| std::cmp::Reverse(version_key(path)));
    paths
}

/// Libraries of the wanted kind in a folder, the highest version first.
fn libraries_in(folder: &Path, wanted: Wanted) -> impl Iterator<Item = PathBuf> + use<> {
    children(folder, wanted.stem()).into_iter().filter(move |path| is_library(path, wanted))
}

/// Whether a file's name is `stem`, or `stem` with a version of digits and dots.
fn is_library(path: &Path, wanted: Wanted) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    name.as_deref()
        .and_then(|n| n.strip_prefix(wanted.stem()))
        .is_some_and(|rest| rest.chars().all(|c| c == '.' || c.is_ascii_digit()))
}

/// Numbers in a file name, so that `so.13` sorts after `so.9`.
fn version_key(path: &Path) -> (Vec<u64>, String) {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let numbers = name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect();
    (numbers, name)
}

/// Opens a candidate; for a file, its folder's companion libraries first, since not every package of CUDA's
/// tells the loader where its own parts are.
pub(super) fn open(candidate: &Candidate, companions: &str) -> Result<Library, libloading::Error> {
    // SAFETY: opening a shared library runs its initialisers. These are NVIDIA's, which are made to be loaded at run
    // time and ask nothing of the caller.
    unsafe {
        match candidate {
            Candidate::Name(name) => Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL),
            Candidate::File(path) => {
                let folder = path.parent().unwrap_or(Path::new("/"));
                for companion in children(folder, companions) {
                    if let Ok(library) = Library::open(Some(&companion), RTLD_NOW | RTLD_GLOBAL) {
                        // Kept open for good: what is loaded already is what a later open by name finds.
                        std::mem::forget(library);
                    }
                }
                Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL)
            }
        }
    }
}

/// Makes the driver loadable by its plain name, wherever it lies.
///
/// # Errors
/// No candidate opens.
pub fn load_driver(host: &Host<'_>) -> Result<(), NotFound> {
    let (candidates, looked) = search(host, Wanted::Driver);
    for candidate in &candidates {
        if let Ok(library) = open(candidate, "libcuda-none") {
            // Kept open for good, so that the binding's own open by name (`libcuda.so.1`) finds this one.
            std::mem::forget(library);
            return Ok(());
        }
    }
    Err(NotFound::new(Wanted::Driver, looked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"").unwrap();
    }

    fn files(host: &Host<'_>, wanted: Wanted) -> Vec<String> {
        let (found, _) = search(host, wanted);
        found
            .into_iter()
            .filter_map(|candidate| match candidate {
                Candidate::File(path) => Some(path.strip_prefix(&host.root).unwrap().display().to_string()),
                Candidate::Name(_) => None,
            })
            .collect()
    }

    #[test]
    fn finds_toolkits_python_packages_and_bare_versions() {
        let root = tempfile::tempdir().unwrap();
        let at = |p: &str| root.path().join(p);
        touch(&at("usr/local/cuda-11.8/lib64/libnvrtc.so.11.2"));
        touch(&at("usr/local/cuda-13.0/lib64/libnvrtc.so.13"));
        touch(&at("usr/local/cuda-13.0/lib64/libnvrtc-builtins.so.13.0"));
        touch(&at("usr/local/cuda-13.0/lib64/libnvrtc.alt.so.13"));
        touch(&at("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"));
        let env = |name: &str| (name == "VIRTUAL_ENV").then(|| at("venv").into_os_string());
        let host = Host { env: &env, root: root.path().to_path_buf() };
        assert_eq!(
            files(&host, Wanted::Nvrtc),
            [
                "usr/local/cuda-13.0/lib64/libnvrtc.so.13",
                "usr/local/cuda-11.8/lib64/libnvrtc.so.11.2",
                "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
            ]
        );
    }

    #[test]
    fn the_own_variable_comes_first_as_folder_prefix_or_file() {
        let root = tempfile::tempdir().unwrap();
        let at = |p: &str| root.path().join(p);
        touch(&at("a/libnvrtc.so.12"));
        touch(&at("b/lib64/libnvrtc.so.11.2"));
        touch(&at("c/libnvrtc.so.13"));
        touch(&at("usr/lib64/libnvrtc.so"));
        let value = std::env::join_paths([at("c/libnvrtc.so.13"), at("a"), at("b")]).unwrap();
        let env = |name: &str| (name == PATH_VARIABLE).then(|| value.clone());
        let host = Host { env: &env, root: root.path().to_path_buf() };
        let found = files(&host, Wanted::Nvrtc);
        assert_eq!(
            found,
            ["c/libnvrtc.so.13", "a/libnvrtc.so.12", "b/lib64/libnvrtc.so.11.2", "usr/lib64/libnvrtc.so"]
        );
        let (order, _) = search(&host, Wanted::Nvrtc);
        assert!(matches!(order[2], Candidate::File(_)) && matches!(order[3], Candidate::Name(_)));
    }

    #[test]
    fn later_versions_come_first_by_number_not_by_letter() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9", "11.2", "13"] {
            touch(&root.path().join(format!("usr/lib64/libnvrtc.so.{version}")));
        }
        let host = Host { env: &|_| None, root: root.path().to_path_buf() };
        assert_eq!(
            files(&host, Wanted::Nvrtc),
            ["usr/lib64/libnvrtc.so.13", "usr/lib64/libnvrtc.so.11.2", "usr/lib64/libnvrtc.so.9"]
        );
    }

    #[test]
    fn an_error_lists_every_place() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("usr/lib64")).unwrap();
        let host = Host { env: &|_| None, root: root.path().to_path_buf() };
        let (_, looked) = search(&host, Wanted::Driver);
        let text = NotFound::new(Wanted::Driver, looked).to_string();
        let text = text.replace(&root.path().display().to_string(), "");
        assert_eq!(
            text,
            "no usable libcuda.so found; looked for it\n  by the loader as libcuda.so.1, libcuda.so\n  in /usr/lib64\n  \
             (set DIESWEEP_CUDA_PATH to the folder that holds it)"
        );
    }
}
