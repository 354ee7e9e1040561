// SASS by class: what nvdisasm says of a cubin's code. Its text has a line for each instruction,
//         /*0010*/              @!P0 LDG.E R6, desc[UR6][R2.64] ;
// behind the label of its section, `.text.NAME:`.

#include "sim/count/collect.h"

#include <stdlib.h>

// Opcodes, without modifiers, and what is to be known of them. Those of the uniform datapath have a U in front, and are
// found without it.
enum { ACCESS = KL_SASS_ACCESSES, STAYS = KL_SASS_STAYS, JUMPS = KL_SASS_JUMPS };
// clang-format off
static const struct {
  kiln_profile_class kind;
  unsigned is;
  const char *names;
} classes[] = {
    {KILN_CLASS_INTEGER, 0, " BMSK BREV FLO IABS IADD IADD3 IADD32I ISETP ISCADD LEA LOP LOP3 LOP32I MOV MOV32I IMNMX VIMNMX "
                         "VIMNMX3 VIADD VIADDMNMX POPC PRMT SEL SGXT SHF SHL SHR PLOP3 P2R R2P PSETP CSETP S2R CS2R S2UR "
                         "R2UR R2B B2R UP2UR UR2UP VABSDIFF VABSDIFF4 VHMNMX LEPC GETLMEMBASE SETLMEMBASE "
                         "CREDUX2UR CS2UR QSPC "},
    {KILN_CLASS_MULTIPLY, 0, " IMAD IMAD32I IMUL IMUL32I IDP IDP4A XMAD "},
    {KILN_CLASS_F32_FMA, 0, " FFMA FFMA2 FFMA32I "},
    {KILN_CLASS_F32_ADD, 0, " FADD FADD2 FADD32I "},
    {KILN_CLASS_F32_MULTIPLY, 0, " FMUL FMUL2 FMUL32I "},
    {KILN_CLASS_F32_OTHER, 0, " FMNMX FMNMX3 FSETP FSET FSEL FCHK FCMP FSWZADD "},
    {KILN_CLASS_F64_FMA, 0, " DFMA "},
    {KILN_CLASS_F64_ADD, 0, " DADD "},
    {KILN_CLASS_F64_MULTIPLY, 0, " DMUL "},
    {KILN_CLASS_F64_OTHER, 0, " DMNMX DSETP DSET "},
    {KILN_CLASS_HALF_FMA, 0, " HFMA2 HFMA2_32I HFMA "},
    {KILN_CLASS_HALF_ADD, 0, " HADD2 HADD2_32I "},
    {KILN_CLASS_HALF_MULTIPLY, 0, " HMUL2 HMUL2_32I "},
    {KILN_CLASS_HALF_OTHER, 0, " HMNMX2 HMNMX HSETP2 HSET2 "},
    {KILN_CLASS_CONVERT, 0, " F2F F2FP F2I F2IP I2F I2FP I2I I2IP FRND F2F16 "},
    {KILN_CLASS_SPECIAL, 0, " MUFU "},
    {KILN_CLASS_LOAD, ACCESS, " LD LDG LDL LDS LDSM LDTM "},
    {KILN_CLASS_LOAD, ACCESS | STAYS, " LDGSTS "},
    {KILN_CLASS_LOAD, 0, " LDC LDCU BLKPF "},
    {KILN_CLASS_STORE, ACCESS | STAYS, " ST STG STL STS STSM STAS STTM "},
    {KILN_CLASS_ATOMIC, ACCESS | STAYS, " ATOM ATOMG ATOMS ATOMGX RED REDG REDAS REDS "},
    {KILN_CLASS_BRANCH, JUMPS, " BRA BRX BRXU JMP JMX JMXU BRA_IMM "},
    {KILN_CLASS_CONTROL, JUMPS, " EXIT KILL RET "},
    {KILN_CLASS_CONTROL, 0, " BMOV BPT BREAK BSSY BSYNC CALL NANOSLEEP NOP RPCMOV RTT YIELD ACQBULK PREEXIT "
                         "SETMAXREG PMTRIG WARPSYNC SETCTAID CONT BRK PBK PCNT SSY SYNC ENDCOLLECTIVE COLLECTIVE DEPBAR LDGDEPBAR "},
    {KILN_CLASS_BARRIER, STAYS, " BAR BARRIER CGABAR_ARV CGABAR_WAIT CGABAR_GET CGABAR_SET B2UR UCGABAR_ARV UCGABAR_WAIT SYNCS "},
    {KILN_CLASS_FENCE, STAYS, " MEMBAR ERRBAR FENCE CGAERRBAR CCTL CCTLL CCTLT "},
    {KILN_CLASS_WARP, STAYS, " SHFL VOTE MATCH REDUX CREDUX ELECT "},
};
// clang-format on

static bool is_in(const char *names, const char *name) {
  size_t n = strlen(name);
  for (const char *p = names; (p = strstr(p, name)); p += n)
    if (p[-1] == ' ' && p[n] == ' ') return true;
  return false;
}

kl_sass_opcode kl_sass_opcode_of(kl_str opcode) {
  static const kl_sass_opcode none = {KILN_CLASS_COUNT, 0};
  char name[24];
  if (opcode.n == 0 || opcode.n >= sizeof name) return none;
  memcpy(name, opcode.p, opcode.n);
  name[opcode.n] = 0;
  for (const char *p = name;; p++) {
    for (size_t k = 0; k < KL_COUNT(classes); k++)
      if (is_in(classes[k].names, p)) return (kl_sass_opcode){(uint8_t)classes[k].kind, (uint8_t)classes[k].is};
    if (p != name || *p != 'U' || !p[1]) return none;
  }
}

// --- the text -------------------------------------------------------------------------------------------------------

static kl_str next_line(kl_str *rest) {
  const char *end = memchr(rest->p, '\n', rest->n);
  kl_str line = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
  size_t taken = line.n + (end != NULL);
  *rest = (kl_str){rest->p + taken, rest->n - taken};
  return line;
}

static void skip(kl_str *s, size_t n) {
  *s = (kl_str){s->p + n, s->n - n};
}
static void skip_blanks(kl_str *s) {
  while (s->n && (*s->p == ' ' || *s->p == '\t')) skip(s, 1);
}

// "        /*0010*/   @!P0 LDG.E ..." gives 0x10, LDG and that it is guarded; VLIW's braces are passed over. False:
// another line.
static bool take_instruction(kl_str s, uint64_t *address, kl_str *opcode, bool *guarded) {
  skip_blanks(&s);
  if (s.n < 3 || s.p[0] != '/' || s.p[1] != '*') return false;
  skip(&s, 2);
  size_t digits = 0;
  *address = 0;
  for (; s.n && digits < 15; skip(&s, 1), digits++) {
    unsigned c = (unsigned char)*s.p | 32, value = c >= 'a' ? c - 'a' + 10 : c - '0';
    if (value > 15 || (c > '9' && c < 'a')) break;
    *address = *address << 4 | value;
  }
  if (!digits || s.n < 2 || s.p[0] != '*' || s.p[1] != '/') return false;
  skip(&s, 2);
  skip_blanks(&s);
  if (s.n && *s.p == '{') skip(&s, 1), skip_blanks(&s);
  *guarded = s.n && *s.p == '@';
  if (*guarded) {
    while (s.n && *s.p != ' ') skip(&s, 1);
    skip_blanks(&s);
  }
  size_t n = 0;
  while (n < s.n && ((s.p[n] >= 'A' && s.p[n] <= 'Z') || (s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == '_')) n++;
  *opcode = (kl_str){s.p, n};
  return n > 0;
}

static int by_name(const void *a, const void *b) {
  const kl_sass_code *x = a, *y = b;
  size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
  int c = n ? memcmp(x->name.p, y->name.p, n) : 0;
  return c ? c : (x->name.n > y->name.n) - (x->name.n < y->name.n);
}

// What says how often its block runs: effects that nothing may take elsewhere, unless they are guarded, and so perhaps
// taken out of a block of their own; and branches, of which nobody makes more, but for the end of the code.
static bool is_witness(unsigned is, unsigned kind, bool guarded) {
  if (is & KL_SASS_JUMPS) return guarded || kind == KILN_CLASS_BRANCH;
  return is & KL_SASS_STAYS && !guarded;
}

static void take(kl_sass_instruction *to, kl_str opcode, bool guarded, bool begins) {
  kl_sass_opcode o = kl_sass_opcode_of(opcode);
  to->kind = o.kind;
  to->accesses = o.is & KL_SASS_ACCESSES;
  to->stays = o.is & KL_SASS_STAYS;
  to->witness = is_witness(o.is, o.kind, guarded);
  to->begins = begins;
  to->jumps = o.is & KL_SASS_JUMPS;
}

static bool is_label(kl_str line) {
  return line.n > 1 && line.p[line.n - 1] == ':' && *line.p != ' ' && *line.p != '\t' && *line.p != '/';
}

bool kl_sass_read(const char *text, kl_sass_code *codes, size_t n) {
  kl_str rest = kl_str_of(text), opcode;
  kl_sass_code *of = NULL;
  uint64_t address;
  bool begins = true, guarded;
  static const char label[] = ".text.";
  qsort(codes, n, sizeof *codes, by_name);
  while (rest.n) {
    kl_str line = next_line(&rest);
    if (line.n > sizeof label && memcmp(line.p, label, sizeof label - 1) == 0 && line.p[line.n - 1] == ':') {
      const kl_sass_code want = {.name = {line.p + sizeof label - 1, line.n - sizeof label}};
      of = n ? bsearch(&want, codes, n, sizeof want, by_name) : NULL;
      begins = true;
    } else if (is_label(line)) {
      begins = true;
    } else if (of && take_instruction(line, &address, &opcode, &guarded) && address % 16 == 0 && address / 16 < of->n) {
      kl_sass_instruction *i = &of->instructions[address / 16];
      of->named += !i->named;
      i->named = true;
      take(i, opcode, guarded, begins);
      begins = i->jumps;
    }
  }
  for (size_t k = 0; k < n; k++)
    if (codes[k].named != codes[k].n) return false;
  return true;
}
