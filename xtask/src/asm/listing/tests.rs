use super::*;

const X86: &str = "\
	.type	try_it,@function
try_it:
	.cfi_startproc
	xorl	%eax, %eax
	cmpl	$0, (%rdi)                      # 4-byte
	jne	.LBB0_2
	movl	$1, %eax
	#APP
	xchgl	%eax, (%rdi)
	#NO_APP
.LBB0_2:
	retq
.Lfunc_end0:

waits:
	movl	$1, %eax
	xchgl	%eax, (%rdi)
	testl	%eax, %eax
	jne	.LBB1_1
	retq
.LBB1_1:
	pushq	%rbx
.LBB1_2:
	pause
	cmpl	$0, (%rdi)
	jne	.LBB1_2
	callq	slow
	popq	%rbx
	retq

out_of_line:
	lock		cmpxchgl	%ecx, (%rdi)
	jne	slow
	retq

calls:
	pushq	%rax
	callq	*slow@GOTPCREL(%rip)
	popq	%rax
	retq

goes_on:
	jmp	try_it

loops:
.LBB5_1:
	lock		cmpxchgl	%ecx, (%rdi)
	jne	.LBB5_1
	retq

same = out_of_line
	.set	again, same

four:
	movl	$4, %eax
	retq
	.size	four, 4
";

const ARM: &str = "\
lock:
	ldaxr	w8, [x0]
	cbnz	w8, .LBB0_2
	stxr	w9, w10, [x0]
	cbnz	w9, slow
	ret
.LBB0_2:
	isb                                     // waits
	b	lock

helped:
	stp	x29, x30, [sp, #-16]!
	bl	__aarch64_swp4_acq
	tbnz	w0, #0, .LBB1_2
	ldp	x29, x30, [sp], #16
	ret
.LBB1_2:
	bl	slow
	b.eq	.LBB1_2
	ret

sixteen:
	mov	w0, #16
	ret
";

fn path(text: &str, processor: Processor, symbol: &str) -> Option<String> {
    Listing::parse(text, processor).fast_path(symbol).map(|path| path.instructions.join("; "))
}

#[test]
fn both_outcomes_of_an_attempt_count() {
    let expected =
        "xorl %eax, %eax; cmpl $0, (%rdi); jne +5; movl $1, %eax; xchgl %eax, (%rdi); retq".to_owned();
    assert_eq!(path(X86, Processor::X86, "try_it"), Some(expected));
}

#[test]
fn code_that_waits_or_calls_does_not_count() {
    let expected = "movl $1, %eax; xchgl %eax, (%rdi); testl %eax, %eax; jne away; retq".to_owned();
    assert_eq!(path(X86, Processor::X86, "waits"), Some(expected));
    let expected = "lock cmpxchgl %ecx, (%rdi); jne away; retq".to_owned();
    assert_eq!(path(X86, Processor::X86, "out_of_line"), Some(expected));
}

#[test]
fn a_function_that_cannot_do_without_a_call_has_no_fast_path() {
    for symbol in ["calls", "no such function"] {
        assert_eq!(path(X86, Processor::X86, symbol), None, "{symbol}");
    }
}

#[test]
fn ways_are_as_long_as_what_they_execute() {
    let listing = Listing::parse(X86, Processor::X86);
    let ways = |symbol| listing.fast_path(symbol).expect("there is one").to_string();
    assert_eq!(["try_it", "waits", "loops", "four"].map(ways), ["4-6", "5", "3", "2"]);
}

#[test]
fn a_loop_of_attempts_counts_once() {
    let expected = "lock cmpxchgl %ecx, (%rdi); jne +0; retq".to_owned();
    assert_eq!(path(X86, Processor::X86, "loops"), Some(expected));
}

#[test]
fn second_names_and_mere_jumps_lead_to_the_code() {
    let listing = Listing::parse(X86, Processor::X86);
    for (symbol, expected) in
        [("same", "out_of_line"), ("again", "out_of_line"), ("goes_on", "try_it"), ("calls", "calls")]
    {
        assert_eq!(listing.resolve(symbol), expected);
    }
    assert_eq!(listing.fast_path("again"), listing.fast_path("out_of_line"));
    assert!(listing.symbols().any(|symbol| symbol == "again"));
}

#[test]
fn arm_is_read_too() {
    let expected = "ldaxr w8, [x0]; cbnz w8, away; stxr w9, w10, [x0]; cbnz w9, away; ret".to_owned();
    assert_eq!(path(ARM, Processor::Arm, "lock"), Some(expected));
    let expected = "stp x29, x30, [sp, #-16]!; bl __aarch64_swp4_acq; tbnz w0, #0, away; \
                    ldp x29, x30, [sp], #16; ret";
    assert_eq!(path(ARM, Processor::Arm, "helped").as_deref(), Some(expected));
}

#[test]
fn functions_that_return_a_number_are_told_from_others() {
    assert_eq!(Listing::parse(X86, Processor::X86).constant("four"), Some(4));
    assert_eq!(Listing::parse(ARM, Processor::Arm).constant("sixteen"), Some(16));
    for symbol in ["lock", "helped", "four"] {
        assert_eq!(Listing::parse(ARM, Processor::Arm).constant(symbol), None, "{symbol}");
    }
}

/// A lock whose holder is in a section accesses the caller's own count of sections.
#[test]
fn a_call_for_the_callers_own_data_counts_as_an_instruction() {
    let text = "\
asks:
	callq	__tls_get_addr@PLT
	incl	(%rax)
	retq

reads:
	callq	*nearlock_mark_0_0_0@tlscall(%rax)
	movl	%fs:(%rax), %eax
	retq

asks_arm:
	.tlsdesccall _ZN11nearlock_os6thread8SECTIONS17h0123456789abcdefE
	blr	x1
	ret

calls_arm:
	blr	x1
	ret
";
    let length = |processor, name| Listing::parse(text, processor).fast_path(name).map(|path| path.longest);
    assert_eq!(length(Processor::X86, "asks"), Some(3));
    assert_eq!(length(Processor::X86, "reads"), Some(3));
    assert_eq!(length(Processor::Arm, "asks_arm"), Some(2));
    assert_eq!(length(Processor::Arm, "calls_arm"), None);
}

/// A lock that names its owner asks for the caller's thread id on its fast path.
#[test]
fn a_call_for_the_callers_id_counts_as_an_instruction() {
    let text = "\
asks:
	callq	*_ZN11nearlock_os6thread2id17h0123456789abcdefE@GOTPCREL(%rip)
	lock		cmpxchgl	%ecx, (%rdi)
	retq

asks_arm:
	bl	_RNvNtCs1234_11nearlock_os6thread2id
	ret
";
    let length = |processor, name| Listing::parse(text, processor).fast_path(name).map(|path| path.longest);
    assert_eq!(length(Processor::X86, "asks"), Some(3));
    assert_eq!(length(Processor::Arm, "asks_arm"), Some(2));
}
