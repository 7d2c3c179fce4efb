#include "tracer/insn.h"

#include <Zydis/Zydis.h>

/* Moves of data do the same thing wherever they stand, unless they address by rip. */
static int is_movable(const ZydisDecodedInstruction *in)
{
	return (in->meta.category == ZYDIS_CATEGORY_DATAXFER ||
		in->mnemonic == ZYDIS_MNEMONIC_LEA) &&
	       !(in->attributes & ZYDIS_ATTRIB_IS_RELATIVE);
}

unsigned insn_movable_before(const uint8_t *code, size_t len, unsigned min)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction in = {0};
	size_t at = 0;

	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return 0;
	while (at < len) {
		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, code + at, len - at,
							      &in)))
			return 0;
		at += in.length;
	}
	return in.length >= min && is_movable(&in) ? in.length : 0;
}
