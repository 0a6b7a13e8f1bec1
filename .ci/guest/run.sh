#!/bin/busybox sh
# The checks in the guest, for one of its boots. Each prints a line with PASS or FAIL. The exit
# status is 0 if all passed.
set -u
. /topology.sh
. /checks.sh

failed=0
# NUMA-aware locks; one of them goes through all checks.
heeding=$(nearlock list locks | grep -oE '^(cna|hmcs|cohort)[^ ]*')
lock=$(echo "$heeding" | grep -x cna || echo cna-v13)

# Does one check: `check NAME COMMAND...`. The output of the command explains the verdict, its first
# line on the same line.
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

case $1 in
    four-nodes)
        check "nodes of the kernel" nodes_online 0-3
        check "topology" topology on
        check "topology, CPUs of two nodes" on_cpus 3-4 topology on
        check "topology, a CPU offline" without_cpus 7 topology on
        check "topology, a node's CPUs offline" without_cpus "6 7" topology on
        for test in /tests/*; do
            check "tests: ${test##*/}" tests_pass "$test"
        done
        check "all locks" all_pass
        for each in $heeding; do
            check "$each, four nodes" heeds 4 "$each"
        done
        check "$lock, CPUs of three nodes" on_cpus 1-4 heeds 3 "$lock"
        check "$lock, CPUs of one node, synthetic nodes" on_cpus 4-5 heeds 2 "$lock"
        check "$lock, threads migrating" migrating heeds 4 "$lock"
        check "$lock, a CPU offline" without_cpus 7 heeds 4 "$lock"
        check "$lock, a node's CPUs offline" without_cpus "6 7" heeds 3 "$lock"
        check "$lock, caches as nodes" heeds 4 "$lock" --set numa.locality=llc
        check "$lock, nodes ignored" does_not_heed "$lock" --set numa.mode=off
        ;;
    sparse-nodes)
        check "nodes of the kernel" nodes_online 0,2-4
        check "topology" topology on
        check "tests: nearlock_os" tests_pass /tests/nearlock_os
        check "tests: numa_node" tests_pass /tests/numa_node
        check "$lock, three nodes with CPUs" heeds 3 "$lock"
        ;;
    numa-off)
        check "nodes of the kernel" nodes_online 0
        check "topology" topology off
        check "tests: nearlock_os" tests_pass /tests/nearlock_os
        check "$lock, synthetic nodes" heeds 2 "$lock"
        ;;
    *)
        echo "FAIL checks: there are none named '$1'"
        failed=1
        ;;
esac
exit "$failed"
