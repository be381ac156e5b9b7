fn main() -> std::process::ExitCode {
    diesweep::cli::main()
}
