/*
 * demo: the answers of the script provider where there is no account: demo/script.jsonl, compiled
 * in.
 */
#pragma once

extern const char demo_script[];
