use super::*;

#[test]
fn no_two_cases_have_the_same_name() {
    let mut names: Vec<_> = CONDVAR_CASES.iter().map(|case| case.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}
