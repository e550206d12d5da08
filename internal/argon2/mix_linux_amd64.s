#include "textflag.h"

// Bytes that rotate each 64-bit word to the right by 24 and by 16 bits.
DATA rotate24<>+0x00(SB)/8, $0x0201000706050403
DATA rotate24<>+0x08(SB)/8, $0x0a09080f0e0d0c0b
DATA rotate24<>+0x10(SB)/8, $0x0201000706050403
DATA rotate24<>+0x18(SB)/8, $0x0a09080f0e0d0c0b
GLOBL rotate24<>(SB), RODATA|NOPTR, $32
DATA rotate16<>+0x00(SB)/8, $0x0100070605040302
DATA rotate16<>+0x08(SB)/8, $0x09080f0e0d0c0b0a
DATA rotate16<>+0x10(SB)/8, $0x0100070605040302
DATA rotate16<>+0x18(SB)/8, $0x09080f0e0d0c0b0a
GLOBL rotate16<>(SB), RODATA|NOPTR, $32

// a += b + 2*low(a)*low(b), for each 64-bit word
#define ADD(a, b, t) \
	VPMULUDQ a, b, t \
	VPADDQ   b, a, a \
	VPADDQ   t, t, t \
	VPADDQ   t, a, a

// Both halves of G (RFC 9106, section 3.6) on two rows of 16 words.
#define G() \
	ADD(Y0, Y2, Y8)        \
	ADD(Y1, Y3, Y9)        \
	VPXOR   Y0, Y6, Y6     \
	VPXOR   Y1, Y7, Y7     \
	VPSHUFD $0xB1, Y6, Y6  \
	VPSHUFD $0xB1, Y7, Y7  \
	ADD(Y4, Y6, Y8)        \
	ADD(Y5, Y7, Y9)        \
	VPXOR   Y4, Y2, Y2     \
	VPXOR   Y5, Y3, Y3     \
	VPSHUFB Y14, Y2, Y2    \
	VPSHUFB Y14, Y3, Y3    \
	ADD(Y0, Y2, Y8)        \
	ADD(Y1, Y3, Y9)        \
	VPXOR   Y0, Y6, Y6     \
	VPXOR   Y1, Y7, Y7     \
	VPSHUFB Y15, Y6, Y6    \
	VPSHUFB Y15, Y7, Y7    \
	ADD(Y4, Y6, Y8)        \
	ADD(Y5, Y7, Y9)        \
	VPXOR   Y4, Y2, Y2     \
	VPXOR   Y5, Y3, Y3     \
	VPADDQ  Y2, Y2, Y8     \
	VPADDQ  Y3, Y3, Y9     \
	VPSRLQ  $63, Y2, Y2    \
	VPSRLQ  $63, Y3, Y3    \
	VPOR    Y8, Y2, Y2     \
	VPOR    Y9, Y3, Y3

// The permutation P on two rows: G on the columns, then on the diagonals.
#define P() \
	G()                    \
	VPERMQ $0x39, Y2, Y2   \
	VPERMQ $0x39, Y3, Y3   \
	VPERMQ $0x4E, Y4, Y4   \
	VPERMQ $0x4E, Y5, Y5   \
	VPERMQ $0x93, Y6, Y6   \
	VPERMQ $0x93, Y7, Y7   \
	G()                    \
	VPERMQ $0x93, Y2, Y2   \
	VPERMQ $0x93, Y3, Y3   \
	VPERMQ $0x4E, Y4, Y4   \
	VPERMQ $0x4E, Y5, Y5   \
	VPERMQ $0x39, Y6, Y6   \
	VPERMQ $0x39, Y7, Y7

// Four words of a row, of a ⊕ b.
#define FOUR(offset, words) \
	VMOVDQU (offset)(SI), words        \
	VPXOR   (offset)(DX), words, words

// P on two rows of a ⊕ b, into the frame.
#define ROWS(offset) \
	FOUR(offset+0, Y0)           \
	FOUR(offset+32, Y2)          \
	FOUR(offset+64, Y4)          \
	FOUR(offset+96, Y6)          \
	FOUR(offset+128, Y1)         \
	FOUR(offset+160, Y3)         \
	FOUR(offset+192, Y5)         \
	FOUR(offset+224, Y7)         \
	P()                          \
	VMOVDQU Y0, (offset+0)(R8)   \
	VMOVDQU Y2, (offset+32)(R8)  \
	VMOVDQU Y4, (offset+64)(R8)  \
	VMOVDQU Y6, (offset+96)(R8)  \
	VMOVDQU Y1, (offset+128)(R8) \
	VMOVDQU Y3, (offset+160)(R8) \
	VMOVDQU Y5, (offset+192)(R8) \
	VMOVDQU Y7, (offset+224)(R8)

// Two words of two rows each, for the column at AX and for the one after it.
#define COLUMNS(offset, first, firstLow, second, secondLow) \
	VMOVDQU     (offset)(R8)(AX*1), firstLow                  \
	VMOVDQU     (offset+16)(R8)(AX*1), secondLow              \
	VINSERTI128 $1, (offset+128)(R8)(AX*1), first, first      \
	VINSERTI128 $1, (offset+144)(R8)(AX*1), second, second

// out ⊕= a ⊕ b ⊕ columns, for the same two rows.
#define FINISH(offset, first, second) \
	VPERM2I128 $0x20, second, first, Y8     \
	VPERM2I128 $0x31, second, first, Y9     \
	VPXOR      (offset)(SI)(AX*1), Y8, Y8     \
	VPXOR      (offset+128)(SI)(AX*1), Y9, Y9 \
	VPXOR      (offset)(DX)(AX*1), Y8, Y8     \
	VPXOR      (offset+128)(DX)(AX*1), Y9, Y9 \
	VPXOR      (offset)(DI)(AX*1), Y8, Y8     \
	VPXOR      (offset+128)(DI)(AX*1), Y9, Y9 \
	VMOVDQU    Y8, (offset)(DI)(AX*1)         \
	VMOVDQU    Y9, (offset+128)(DI)(AX*1)

// func mix(out, a, b *block)
TEXT ·mix(SB), 0, $1024-24
	MOVQ    out+0(FP), DI
	MOVQ    a+8(FP), SI
	MOVQ    b+16(FP), DX
	MOVQ    SP, R8
	VMOVDQU rotate24<>(SB), Y14
	VMOVDQU rotate16<>(SB), Y15

	ROWS(0)
	ROWS(256)
	ROWS(512)
	ROWS(768)

	XORQ AX, AX

columns:
	COLUMNS(0, Y0, X0, Y1, X1)
	COLUMNS(256, Y2, X2, Y3, X3)
	COLUMNS(512, Y4, X4, Y5, X5)
	COLUMNS(768, Y6, X6, Y7, X7)
	P()
	FINISH(0, Y0, Y1)
	FINISH(256, Y2, Y3)
	FINISH(512, Y4, Y5)
	FINISH(768, Y6, Y7)
	ADDQ $32, AX
	CMPQ AX, $128
	JB   columns

	VZEROUPPER
	RET
