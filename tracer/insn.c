#include "tracer/insn.h"

#include "tracer/libzydis.h"

#include <string.h>

/* Moves of data do the same thing wherever they stand, unless they address by rip. */
static int is_movable(const ZydisDecodedInstruction *in)
{
	return (in->meta.category == ZYDIS_CATEGORY_DATAXFER ||
		in->mnemonic == ZYDIS_MNEMONIC_LEA) &&
	       !(in->attributes & ZYDIS_ATTRIB_IS_RELATIVE);
}

void insn_prepare(void)
{
	(void)libzydis_get();
}

static bool begin(const struct libzydis *lib, ZydisDecoder *ret)
{
	return lib && ZYAN_SUCCESS(lib->DecoderInit(ret, ZYDIS_MACHINE_MODE_LONG_64,
						    ZYDIS_STACK_WIDTH_64));
}

unsigned insn_movable_before(const uint8_t *code, size_t len, unsigned min)
{
	const struct libzydis *lib = libzydis_get();
	ZydisDecoder decoder;
	ZydisDecodedInstruction in = {0};
	size_t at = 0;

	if (!begin(lib, &decoder))
		return 0;
	while (at < len) {
		if (ZYAN_FAILED(lib->DecoderDecodeInstruction(&decoder, NULL, code + at, len - at,
							      &in)))
			return 0;
		at += in.length;
	}
	return in.length >= min && is_movable(&in) ? in.length : 0;
}

/* ---- the calls in a text ---- */

static void forget(struct insn_calls *c)
{
	c->len_before = 0;
}

static void remember(struct insn_calls *c, size_t at)
{
	if (c->len_before == INSN_LOOK_BACK) {
		memmove(c->before, c->before + 1, sizeof(c->before) - sizeof(c->before[0]));
		c->len_before--;
	}
	c->before[c->len_before++] = at;
}

static bool is_eax(const struct libzydis *lib, const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       lib->RegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o->reg.value) ==
		       ZYDIS_REGISTER_RAX;
}

/* Does it write eax? *ret_nr: what it writes there, -1: something that is not in it. */
static bool sets_number(const ZydisDecoder *decoder, const uint8_t *code, size_t len,
			int32_t *ret_nr)
{
	const struct libzydis *lib = libzydis_get();
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];

	if (ZYAN_FAILED(lib->DecoderDecodeFull(decoder, code, len, &in, op)))
		return false;
	for (size_t i = 0; i < in.operand_count; i++) {
		if (!is_eax(lib, &op[i]) || !(op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		*ret_nr = -1;
		if (in.mnemonic == ZYDIS_MNEMONIC_MOV && op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			*ret_nr = (int32_t)op[1].imm.value.s;
		else if (in.mnemonic == ZYDIS_MNEMONIC_XOR && is_eax(lib, &op[0]) &&
			 is_eax(lib, &op[1]))
			*ret_nr = 0;
		return true;
	}
	return false;
}

static int32_t number_before(const ZydisDecoder *decoder, const struct insn_calls *c)
{
	int32_t nr = -1;

	for (size_t i = c->len_before; i > 0; i--)
		if (sets_number(decoder, c->code + c->before[i - 1], c->len - c->before[i - 1],
				&nr))
			return nr;
	return -1;
}

/* Nothing comes from above to what is behind it. */
static bool ends_a_block(const ZydisDecodedInstruction *in)
{
	return in->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
	       in->meta.category == ZYDIS_CATEGORY_RET || in->mnemonic == ZYDIS_MNEMONIC_INT3;
}

bool insn_next_call(struct insn_calls *c)
{
	const struct libzydis *lib = libzydis_get();
	ZydisDecoder decoder;
	ZydisDecodedInstruction in;

	if (!begin(lib, &decoder))
		return false;
	while (c->at < c->len) {
		size_t at = c->at;
		if (ZYAN_FAILED(lib->DecoderDecodeInstruction(&decoder, NULL, c->code + at,
							      c->len - at, &in))) {
			c->at++; /* data between functions */
			forget(c);
			continue;
		}
		c->at += in.length;
		if (in.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
			c->call = at;
			c->nr = number_before(&decoder, c);
			forget(c);
			return true;
		}
		if (ends_a_block(&in))
			forget(c);
		else
			remember(c, at);
	}
	return false;
}
