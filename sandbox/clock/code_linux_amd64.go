package clock

import (
	"encoding/binary"
	"math"
	"time"
)

// code is a function with the signature of clock_gettime(2). It asks the kernel, and changes CLOCK_REALTIME
// by the four numbers behind it. It uses only registers that a called function may change (System V ABI,
// AMD64 supplement, 3.2.1).
//
//	 0  mov  $228, %eax          the number of clock_gettime
//	 5  syscall
//	 7  test %eax, %eax
//	 9  jne  72                  an error
//	 b  test %edi, %edi
//	 d  jne  72                  not CLOCK_REALTIME
//	 f  mov  (%rsi), %rax
//	12  imul $1000000000, %rax, %rax
//	19  add  8(%rsi), %rax       the time in nanoseconds
//	1d  cmp  until(%rip), %rax
//	24  jg   70
//	26  mov  %rax, %rcx
//	29  sub  from(%rip), %rcx
//	30  imul rate(%rip), %rcx
//	38  sar  $10, %rcx
//	3c  add  %rcx, %rax
//	3f  add  step(%rip), %rax
//	46  cqo
//	48  mov  $1000000000, %ecx
//	4d  idiv %rcx
//	50  mov  %rax, (%rsi)
//	53  mov  %rdx, 8(%rsi)
//	57  … nop
//	70  xor  %eax, %eax
//	72  ret
var code = []byte{
	0xb8, 0xe4, 0x00, 0x00, 0x00,
	0x0f, 0x05,
	0x85, 0xc0,
	0x75, 0x72 - 0x0b,
	0x85, 0xff,
	0x75, 0x72 - 0x0f,
	0x48, 0x8b, 0x06,
	0x48, 0x69, 0xc0, 0x00, 0xca, 0x9a, 0x3b,
	0x48, 0x03, 0x46, 0x08,
	0x48, 0x3b, 0x05, untilAt - 0x24, 0, 0, 0,
	0x7f, 0x70 - 0x26,
	0x48, 0x89, 0xc1,
	0x48, 0x2b, 0x0d, fromAt - 0x30, 0, 0, 0,
	0x48, 0x0f, 0xaf, 0x0d, rateAt - 0x38, 0, 0, 0,
	0x48, 0xc1, 0xf9, 0x0a,
	0x48, 0x01, 0xc8,
	0x48, 0x03, 0x05, stepAt - 0x46, 0, 0, 0,
	0x48, 0x99,
	0xb9, 0x00, 0xca, 0x9a, 0x3b,
	0x48, 0xf7, 0xf9,
	0x48, 0x89, 0x06,
	0x48, 0x89, 0x56, 0x08,
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	0x31, 0xc0,
	0xc3,
}

// Where the numbers are, from the beginning of the code.
const (
	untilAt = 0x78
	fromAt  = untilAt + 8
	rateAt  = fromAt + 8
	stepAt  = rateAt + 8
	size    = stepAt + 8
	// perSecond is what the rate counts in: the code divides by it with a shift.
	perSecond = 1 << 10
)

// numbers are those that the code reads.
func (e Error) numbers() []byte {
	rate := math.Round(e.Rate.Seconds() * perSecond)
	var out []byte
	for _, n := range []int64{e.Until.UnixNano(), e.From.UnixNano(), int64(rate), int64(e.Step / time.Nanosecond)} {
		out = binary.LittleEndian.AppendUint64(out, uint64(n))
	}
	return out
}
