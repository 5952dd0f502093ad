use super::*;

#[test]
fn names_come_in_order_of_appearance() {
    let run =
        Run::parse("r", b"q2 Q0 b 1 0.5 t\nq1 Q0 a 1 1e-3 t\r\nq2\tQ0\ta\t2\t-3\tt\n").unwrap();
    assert_eq!(
        (run.queries, run.docs),
        (vec!["q2".into(), "q1".into()], vec!["b".into(), "a".into()])
    );
    assert_eq!(run.lists, [vec![(0, 0.5), (1, -3.0)], vec![(1, 1e-3)]]);
}

#[test]
fn malformed_lines_have_their_number() {
    let six = "expected qid Q0 docid rank score tag (6 fields), got";
    for (text, want) in [
        ("", "r: expected a retrieved document on each line, got an empty file".into()),
        ("q Q0 d 1 0.5\n", format!("r line 1: {six} 5 fields in \"q Q0 d 1 0.5\"")),
        ("q Q0 d 1 .5 t\n\n", format!("r line 2: {six} an empty line")),
        ("q Q0 d 1 .5 t x\n", format!("r line 1: {six} more fields in \"q Q0 d 1 .5 t x\"")),
        ("q Q0 d one .5 t", "r line 1: expected a number as rank, got \"one\"".into()),
        ("q Q0 d 1 high t", "r line 1: expected a finite score, got \"high\"".into()),
        ("q Q0 d 1 NaN t", "r line 1: expected a finite score, got \"NaN\"".into()),
        ("q Q0 d 1 inf t", "r line 1: expected a finite score, got \"inf\"".into()),
        ("q Q0 d 1 -inf t", "r line 1: expected a finite score, got \"-inf\"".into()),
        ("q Q0 d 1 1e999 t", "r line 1: expected a finite score, got \"1e999\"".into()),
        (
            "q Q0 d 1 1 t\np Q0 d 1 1 t\nq Q0 e 1 1 t\nq Q0 d 2 1 t\nq Q0 e 2 1 t\n",
            "r line 4: expected each document once per query, got \"d\" again for \"q\"".into(),
        ),
    ] {
        assert_eq!(Run::parse("r", text.as_bytes()).unwrap_err().to_string(), want);
    }
}

#[test]
fn what_is_written_reads_back() {
    let names = |all: &[&str]| all.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let (queries, docs) = (names(&["q0", "q1"]), names(&["a", "b", "c"]));
    let third = 1.0 / 3.0;
    let lists = [vec![(2, 1e-12), (0, third)], vec![(1, 2.0), (0, f64::NEG_INFINITY)]];
    let text = run_text(&queries, &docs, &lists, "csls").unwrap();
    let want = "q0 Q0 c 1 1e-12 csls\nq0 Q0 a 2 0.3333333333333333 csls\nq1 Q0 b 1 2.0 csls\n";
    assert_eq!(text, want);
    let run = Run::parse("r", text.as_bytes()).unwrap();
    assert_eq!(run.lists[0][1].1, third);
    let spaced = names(&["a", "b c", "d"]);
    let line = run_text(&queries, &spaced, &lists, "csls").unwrap_err().to_string();
    assert_eq!(line, "run file: expected names without spaces, got \"b c\"");
}
