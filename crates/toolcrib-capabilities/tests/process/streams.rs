//! Inputs and outputs.

use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::process::{Output, ProcessEnd, Processes, RunSpec, TAIL_BYTES};

use crate::support::{HANGS, run, sh, text};

#[tokio::test]
async fn what_is_written_while_it_reads_arrives_whole() {
    // Far more than the capacity of pipes, both ways at once.
    let input: Vec<u8> = (0..=255).cycle().take(8 * 1024 * 1024).collect();
    let mut spec = RunSpec::from(sh("tee /dev/stderr", &[]));
    spec.stdin = Some(input.clone());
    spec.max_output_bytes = 16 * 1024 * 1024;
    let finished = run(spec).await.unwrap();
    assert_eq!(finished.ended, ProcessEnd::Code(0));
    assert!(finished.stdout.head() == input && finished.stderr.head() == input);
}

#[tokio::test]
async fn a_program_need_not_read_what_it_is_given() {
    let large = vec![b'x'; 8 * 1024 * 1024];
    for (script, code) in
        [("exit 3", 3), ("exec <&-; sleep 0.1; exit 4", 4), ("head -c 5 >/dev/null; exit 5", 5)]
    {
        let mut spec = RunSpec::from(sh(script, &[]));
        spec.stdin = Some(large.clone());
        assert_eq!(run(spec).await.unwrap().ended, ProcessEnd::Code(code));
    }
    // Without input it does not wait.
    assert_eq!(run(sh("cat", &[])).await.unwrap().stdout.total(), 0);
    let mut spec = RunSpec::from(sh("cat", &[]));
    spec.stdin = Some(Vec::new());
    assert_eq!(run(spec).await.unwrap().ended, ProcessEnd::Code(0));
}

#[tokio::test]
async fn a_program_that_closes_its_outputs_is_awaited() {
    let finished = run(sh("echo out; exec >&- 2>&-; sleep 0.2; exit 6", &[])).await.unwrap();
    assert_eq!((finished.ended, text(&finished.stdout)), (ProcessEnd::Code(6), "out\n"));
}

#[tokio::test]
async fn the_head_the_size_and_the_tail_of_a_gigabyte_are_kept() {
    let mut spec =
        RunSpec::from(sh("head -c 1073741824 /dev/zero; echo the end; echo why >&2; exit 8", &[]));
    spec.max_output_bytes = 1000;
    let finished = run(spec).await.unwrap();
    println!("1 GiB in {:?}", finished.duration);
    assert_eq!(finished.ended, ProcessEnd::Code(8));
    assert_eq!(finished.stdout.head(), [0; 1000]);
    assert_eq!(finished.stdout.total(), 1_073_741_824 + 8);
    assert!(finished.stdout.is_truncated());
    assert_eq!(finished.stdout.last(8), b"the end\n");
    assert_eq!(finished.stdout.last(usize::MAX).len(), TAIL_BYTES);
    assert_eq!(text(&finished.stderr), "why\n");
}

#[tokio::test]
async fn output_is_shown_as_it_comes_beyond_the_cap_too() {
    let mut spec =
        RunSpec::from(sh("printf 'abc'; read x; printf 'def\\377'; printf 'err' >&2", &[]));
    spec.max_output_bytes = 5;
    spec.stdin = Some(b"go\n".to_vec());
    let mut seen = (Vec::new(), Vec::new());
    let never = CancellationToken::new();
    let processes = Processes::any();
    let run = processes.run(spec, &never, |output, piece| {
        match output {
            Output::Stdout => &mut seen.0,
            Output::Stderr => &mut seen.1,
        }
        .extend_from_slice(piece);
    });
    let finished = tokio::time::timeout(HANGS, run).await.expect("it hangs").unwrap();
    assert_eq!(seen, (b"abcdef\xff".to_vec(), b"err".to_vec()));
    assert_eq!(finished.stdout.last(3), b"ef\xff", "bytes are bytes");
    assert_eq!(finished.stdout.total(), 7);
}
