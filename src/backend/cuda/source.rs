//! The kernels' source, embedded and joined.
//!
//! The compiler gets no headers from memory, so that the files are joined to one text, with `#line` directives that keep
//! file and line in its messages.

/// A file below `kernels/`.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Path in the repository.
    pub path: &'static str,
    /// Text.
    pub text: &'static str,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// Every file, in the order in which they are joined: what others use comes first.
        pub const FILES: &[File] = &[$(File {
            path: concat!("kernels/", $name),
            text: include_str!(concat!("../../../kernels/", $name)),
        }),*];
    };
}

files![
    "common.cuh",
    "product.cuh",
    "product.cu",
    "attention.cu",
    "clear.cu",
    "data.cu",
    "loss.cu",
    "norm.cu",
    "optimizer.cu",
    "control.cu",
    "recurrence.cu",
    "time_mix.cu",
];

/// All files as one source.
pub fn joined() -> String {
    join(FILES)
}

fn join(files: &[File]) -> String {
    let mut source = String::new();
    for file in files {
        source += &format!("#line 1 \"{}\"\n{}", file.path, file.text);
        if !source.ends_with('\n') {
            source.push('\n');
        }
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_begins_on_a_line_of_its_own_under_its_name() {
        let files = [File { path: "kernels/a.cu", text: "int a;" }, File { path: "kernels/b.cu", text: "int b;\n" }];
        assert_eq!(join(&files), "#line 1 \"kernels/a.cu\"\nint a;\n#line 1 \"kernels/b.cu\"\nint b;\n");
    }

    #[test]
    fn every_kernel_file_of_the_repository_is_embedded() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = format!("kernels/{}", entry.unwrap().file_name().to_string_lossy());
            assert!(FILES.iter().any(|file| file.path == path), "{path} is not in FILES");
        }
    }
}
