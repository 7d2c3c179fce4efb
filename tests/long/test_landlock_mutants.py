"""Seeded faults in the model: every one is caught, with the seeds below."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ORACLE = os.environ["ORACLE"]
SOURCE = pathlib.Path(os.environ["SOURCE_DIR"])
NO_LANDLOCK, DIFFER, UNBALANCED = 77, 1, 4
SEEDS = range(1, 9)

# (file, what stands there, what shall stand there instead): the fault is the difference.
MUTANTS = [
    # How layers and rules join.
    ("lldomain.c", "rights->layer[i] |= llruleset_lookup", "rights->layer[i] = llruleset_lookup"),
    ("lldomain.c", "i < d->count; i++)\n\t\trights->layer", "i < 1; i++)\n\t\trights->layer"),
    ("lldomain.c", "granted &= rights->layer[i] | ~lldomain_handled(d, i)",
     "granted &= rights->layer[i] | ~lldomain_handled(d, 0)"),
    ("lldomain.c", "return llruleset_handled(d->layers[i]) | LLR_REFER;", "return llruleset_handled(d->layers[i]);"),
    ("lldomain.c", "\tif (!lldomain_is_asked(d))\n\t\treturn granted;\n", ""),
    # The walk.
    ("llwalk.c", "\t\t*compared = *all;\n\t\tlldomain_join(d, c->here.dev, c->here.ino, all);",
     "\t\tlldomain_join(d, c->here.dev, c->here.ino, all);\n\t\t*compared = *all;"),
    ("llwalk.c", "c.here.mnt == walk.start.mnt || !c.here.mount_root", "!c.here.mount_root"),
    ("llwalk.c", "\tif (llwalk_same(&c->here, &above))",
     "\tif (llwalk_same(&c->here, &above) || c->here.mnt != above.mnt)"),
    ("llwalk.c", "c->up++", "c->up += 2"),
    # One place.
    ("llmodel.c", "sum.layer[i] |= own->layer[i];", "(void)own;"),
    ("llmodel.c", "S_ISCHR(mode) && rdev == 0 && (d->errata", "S_ISCHR(mode) && rdev == 0 && !(d->errata"),
    # A move: what it needs.
    ("llmodel.c", "\tfrom.needs = llright_to_remove(from.mode);\n", ""),
    ("llmodel.c", "\tto.needs = from.makes;\n\tif (move->new_object", "\tif (move->new_object"),
    ("llmodel.c", "\tif (move->new_object >= 0)\n\t\tto.needs |= llright_to_remove(to.mode);\n", ""),
    ("llmodel.c", "from.needs |= to.makes;", "from.needs |= from.makes;"),
    ("llmodel.c", "(move->flags & RENAME_WHITEOUT) && (d->errata", "(move->flags & RENAME_WHITEOUT) && !(d->errata"),
    ("llmodel.c", "\tto.needs = from.makes;\n\t*ret = judge(d, &from, &to, false);", "\t*ret = judge(d, &from, &to, false);"),
    # A move: what it widens.
    ("llmodel.c", "from->walk.compared.layer[i] | from->own.layer[i];", "from->walk.compared.layer[i];"),
    ("llmodel.c", "from->walk.compared.layer[i] | from->own.layer[i];", "from->walk.all.layer[i] | from->own.layer[i];"),
    ("llmodel.c", "to->walk.compared.layer[i] & ~had", "to->walk.all.layer[i] & ~had"),
    ("llmodel.c", "S_ISDIR(from->mode) ? (uint64_t)LLR_ALL : llright_for_file()", "(uint64_t)LLR_ALL"),
    ("llmodel.c", "S_ISDIR(from->mode) ? (uint64_t)LLR_ALL : llright_for_file()", "llright_for_file()"),
    ("llmodel.c", "widens(d, from, to) || (exchange && widens(d, to, from))", "widens(d, from, to)"),
    ("llmodel.c", "widens(d, from, to) || (exchange && widens(d, to, from))",
     "(exchange ? widens(d, to, from) : widens(d, from, to))"),
    ("llmodel.c", "\tif (is_complete(d, from, to))\n\t\treturn 0;\n", ""),
    # A move: in which order.
    ("llmodel.c", "(from->needs & ~source) || (to->needs & ~target)", "to->needs & ~target"),
    ("llmodel.c", "if (!(source & target & LLR_REFER))", "if (!(target & LLR_REFER))"),
    ("llmodel.c", "if (!(source & target & LLR_REFER))", "if (!((source | target) & LLR_REFER))"),
    ("llmodel.c", "\tif (!llwalk_same(&from->walk.start, &to->walk.start))\n\t\treturn", "\tif (true)\n\t\treturn"),
]

# What no random world has: only the written cases catch these.
CASE_MUTANTS = [
    ("llwalk.c", "if (d->errata & LLABI_ERRATUM_DISCONNECTED)", "if (!(d->errata & LLABI_ERRATUM_DISCONNECTED))"),
    ("llwalk.c", "\t\tr = to_the_mounts_root(d, &c, &walk->all);\n", "\t\tr = 0;\n"),
    ("llwalk.c", "\t\tr = to_the_root(d, &c, &walk->all, &walk->compared);\n\tclimb_end(&c);\n\tclose(fd);\n\tif (d->errata",
     "\t\tr = 0;\n\tclimb_end(&c);\n\tclose(fd);\n\tif (d->errata"),
    ("llescape.c", "id_or_null ? m.id == *id_or_null : m.dev == dev && m.whole", "m.dev == dev && m.whole"),
]

def run_oracle(oracle, *options):
    return subprocess.run([oracle, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          timeout=100)


@unittest.skipIf(os.geteuid(), "some faults show only between mounts, which take root")
class Mutants(unittest.TestCase):
    def setUp(self):
        if run_oracle(ORACLE, "--verdicts", "1").returncode == NO_LANDLOCK:
            self.skipTest("no Landlock with refer here")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="warder-mutants-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.objects = {}
        for file in sorted([*SOURCE.glob("landlock/*.c"), *SOURCE.glob("tests/oracle/*.c")]):
            self.objects[file.name] = self.folder / (file.name + ".o")
            self.compile(file, self.objects[file.name])

    def compile(self, source, to):
        subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-w", f"-I{SOURCE}", "-c", source, "-o", to],
                       check=True)

    def build(self, driver, file, old, new):
        """The driver with this one fault in the model; None: there is no such text, or more than one."""
        text = (SOURCE / "landlock" / file).read_text()
        if text.count(old) != 1:
            return None
        mutant, program = self.folder / "mutant.c", self.folder / "mutant"
        mutant.write_text(text.replace(old, new))
        self.compile(mutant, self.folder / "mutant.o")
        objects = {**self.objects, file: self.folder / "mutant.o"}
        for other in {"main.c", "cases.c"} - {driver}:
            del objects[other]
        subprocess.run(["cc", *objects.values(), "-o", program], check=True)
        return program

    def differs(self, oracle):
        for seed in SEEDS:
            done = run_oracle(oracle, "--seed", str(seed), "--verdicts", "6000", "--differences", "1")
            if done.returncode == DIFFER:
                return True
            self.assertIn(done.returncode, (0, UNBALANCED), done.stderr)
        return False

    def every_one(self, mutants, driver, is_caught):
        for mutant in mutants:
            with self.subTest(mutant=mutant):
                program = self.build(driver, *mutant)
                self.assertIsNotNone(program, "the table is older than the source")
                self.assertTrue(is_caught(program), "it lives")

    def test_every_fault_is_caught_by_random_calls(self):
        self.every_one(MUTANTS, "main.c", self.differs)

    def test_every_fault_is_caught_by_the_written_cases(self):
        self.every_one(CASE_MUTANTS, "cases.c", lambda cases: run_oracle(
            cases, SOURCE / "tests/oracle/cases.txt").returncode == DIFFER)


if __name__ == "__main__":
    unittest.main()
