#!/bin/busybox sh
# The checks in the guest, for one of its boots. Each says PASS or FAIL in a line; the exit status is 0 if all passed.
set -u
. /checks.sh

failed=0

# Does one check: `check NAME COMMAND...`. What the command says explains the verdict, its first line in the same line.
check() {
    local name=$1 said
    shift
    if said=$("$@" 2>&1); then
        echo "PASS $name: $(echo "$said" | head -n 1)"
    else
        failed=1
        echo "FAIL $name: $(echo "$said" | head -n 1)"
        echo "$said" | sed 1d
    fi
}

tests() {
    local test
    for test in /tests/*; do
        check "${test##*/} tests" tests_pass "$test"
    done
}

case $1 in
    four-nodes)
        check "nodes of the kernel" nodes_online 0-3
        tests
        check "cna-v13 on all nodes" torture_sorts cna-v13
        check "cna-v13 on two nodes" on_cpus 2-5 torture_sorts cna-v13
        check "cna-v13 on one node" on_cpus 4-5 torture_does_not_sort cna-v13
        check "cna-v13, threads migrating" migrating torture_sorts cna-v13
        check "cna-v13 without a CPU" without_cpus 7 torture_sorts cna-v13
        check "cna-v13 without a node's CPUs" without_cpus "6 7" torture_sorts cna-v13
        check "cna-v13, CPUs back" torture_sorts cna-v13
        ;;
    sparse-nodes)
        check "nodes of the kernel" nodes_online 0,2-4
        tests
        check "cna-v13 on sparse nodes" torture_sorts cna-v13
        ;;
    numa-off)
        check "nodes of the kernel" nodes_online 0
        tests
        check "cna-v13 on one node" torture_succeeds cna-v13
        ;;
    *)
        echo "FAIL checks: there are none named '$1'"
        failed=1
        ;;
esac
exit "$failed"
