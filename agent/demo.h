/*
 * demo: what the script provider plays in a conversation without an account, or where it was named
 * without a file: demo/script.jsonl, compiled in.
 */
#pragma once

extern const char demo_script[];
