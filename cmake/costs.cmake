# SPDX-License-Identifier: Apache-2.0
# Seconds that tests took in this configuration when the suite was recorded (scripts/test --record). CTest begins with
# the longest, so that none is still running when all others are done.
set(weft_record ${CMAKE_CURRENT_LIST_DIR}/../bench/history/suite.json)
if(CMAKE_CROSSCOMPILING)
    set(weft_recorded aarch64)
elseif(WEFT_SANITIZE STREQUAL thread)
    set(weft_recorded tsan)
elseif(WEFT_SANITIZE)
    set(weft_recorded asan)
else()
    set(weft_recorded release)
endif()
if(EXISTS ${weft_record})
    file(STRINGS ${weft_record} lines REGEX "^ *\"${weft_recorded}/[^\"]+\": [0-9.]+,?$")
    foreach(line ${lines})
        string(REGEX REPLACE "^ *\"[a-z0-9]+/([^\"]+)\": ([0-9]+).*" "\\1;\\2" line "${line}")
        list(GET line 0 test)
        list(GET line 1 weft_took_${test})
    endforeach()
endif()

# About how many where programs are slow (sanitizers, emulation), for tests that the record lacks; the others take 5 at
# most. A test that hangs costs a few times of what it takes.
set(weft_test_costs
    backend_conformance 65 golden 60 check-kernels 50 hf_reference 50 quality 45 pull 15 pull_transfer 30 grammar 40
        server 40 golden-avx2 30 soak 40
    text_grammar_limits 30 text_grammar_masks 30 bench 20 bench_scripts 40 golden-ref 25 backend_threads 20
        server_hostile 45 server_adapters 20 server_clients 20 kill_kept 20
    text_tokenizer_limits 15 text_speed 15 text_regex 20 jinja_templates 15 cli 15 terminal 30 top 15 hostile 15 same
        15 same-avx2 15
    backend_direct 40 batcher 15 batcher_same 15 batcher_same_material 60 batcher_drafts 60
        batcher_drafts_material 60 batcher_ends 10
        batcher_faults 25
        batcher_disk 25
    outputs 15 contexts 10 model_adapters 30 smollm2 40 smollm2_fetch 45 train_run 25 train_resume 12 chat
        30 train 25 adapter_train 25 serve_alderbrook 40 serve_same 25 serve_faults 20 serve_kill 15 serve_flags 10
    jinja_shapes 20 adapters 20 near 15 serve_folder 25 serve_learned 75 serve_models_real 20 model_adapters_material 20
        train_gradient 20 engine_calls 15 serve_telemetry 20 server_shares 30 numbers 30 house_install 15
    house_absent 60 house_absent_alone 60 house_faults 10 text_speed_own 10 quant_models 10 sched_sim 10 base_pool 10
        kv_store 10 kv_store_limits 10 plan_material 15 plan_cli_material 25 python 15)

# Programs that never have a second thread, and scripts whose claims are about one (a terminal, downloads, files that
# are written): the thread sanitizer
# has nothing to see in them that other tests do not show it, and its suite leaves them out.
set(weft_of_one_thread
    base_alloc base_cpu base_hash base_json base_machine base_params base_random base_taken base_team base_text
    quant_half quant_decode quant_encode quant_models kernels_next
    text_calls text_chat_content text_chat_messages text_lazy jinja_shapes_own jinja_templates_own jinja_variants_own
    jinja_extras_all jinja_extras_own engine_tools engine_tools_material chat_parser train_forms train_serving
    train_serving_material cli_terminal cli_doctor cli_fit server_stages hub_head
    near manual hostile fit fit_material pull pull_transfer pull_cache pull_cache_material push train_tokenizer
    mem_buffers text_added text_alike text_answer text_answer_templates text_bpe_train text_golden text_grammar
        text_grammar_large text_grammar_large_material text_grammar_masks text_jinja text_pattern text_regex text_schema
        text_schema_limits text_speed text_speed_own text_spm_proto text_structured
    text_tokenizer text_tokenizer_json text_tokenizer_limits jinja_language jinja_templates jinja_shapes
        jinja_variants gguf_read gguf_malformed gguf_split
    gguf_write gguf_read_material gguf_write_material safetensors plan_file hub_names hub_listing hub_cache
        check-kernels
    graph_build graph_plan model_hf model_vocab model_vocab_keys kv kv_prefix adapt_read adapt_peft adapt_weave sample
        draft
        sched_heap sched_sim sched_queue train_data train_mix train_steer train_steered train_refused train_curve
    config config_stages server_limits text_stop http_peer http_tls api_answers api_fields api_message api_objects
        api_tools terminal
    engine_calls engine_apply route_book train_job learn_version learn_night text_answer_forms
    top outputs route search quality_answers memories base_base64 base_svg learn_merkle learn_witness)

# What can differ by processor: kernels, the order of bytes, alignment, atomics, conversions. `make test` runs these
# under emulation, and
# builds no others for it (processor_tests); `make test-all` runs all.
set(weft_of_processor
    check-kernels golden base_alloc base_background base_cpu base_hash base_json base_pool base_random base_team
        base_text base_topology mem_buffers
    quant_half quant_decode quant_encode text_golden text_tokenizer gguf_read gguf_malformed gguf_split gguf_write
        safetensors plan_file
    kv kv_prefix kv_store adapt_read adapt_peft adapt_weave adapt_store adapt_store_threads sample sched_queue
        graph_plan backend_adapter backend_threads train_product train_gradient)
if(CMAKE_CROSSCOMPILING)
    add_custom_target(processor_tests)
endif()

# Under the thread sanitizer these run in `make test-all` only (label "long"). What they claim is claimed in the other
# configurations; each leads through the command line or one more client to threads that this sanitizer watches in the
# tests that stand nearest to them: of the pool (base_pool, backend_*, golden, same, sessions), of quantizing
# (serve_models_real), of training (train_run, train_golden, train_resume, train_product), of the engine (batcher*,
# engine_*, model_adapters), of learning (learn_loop, learn_store, learn_kill, kill_kept), and of the server (server*,
# http_server, serve_same, serve_faults, serve_folder, serve_telemetry, serve_tenants, serve_kill, soak).
set(weft_threads_elsewhere
    numbers quality contexts grammar chat chat_material adapters gradient_reference hf_reference plan_cli
    plan_cli_material train adapter_train provider demo demo_material doctor cli_material
    memory memory_material plan plan_material train_gradient serve_flags
    serve_alderbrook serve_messages serve_curl serve_openai serve_nameless serve_spm serve_flags_tls
    serve_configured server_openai server_page server_tools
    losses eval eval_tasks bench cli_draft learn_teach learn_contest learn_instant learn_style learn_plain
    learn_questions learn_kill_versions plan-avx2 same-avx2)

# What only `make test-all` runs (label "long"): the same claims on other tiers than the best of this machine and
# AVX2, whose kernels
# check-kernels holds against ref in every run, and what trains for minutes.
set(weft_long
    golden-ref same-ref plan-ref model_adapters_material-ref model_adapters_material-avx2
    golden-avx512 same-avx512 plan-avx512 model_adapters_material-avx512
    golden-avx512vnni same-avx512vnni plan-avx512vnni model_adapters_material-avx512vnni
    golden-avx512bf16 same-avx512bf16 plan-avx512bf16 model_adapters_material-avx512bf16
    make_model house_absent_alone)
if(NOT WEFT_SANITIZE) # whole models with AVX2 run where the address sanitizer looks into it
    list(APPEND weft_long golden-avx2 same-avx2 plan-avx2)
elseif(WEFT_SANITIZE STREQUAL thread)
    list(APPEND weft_long ${weft_threads_elsewhere})
else() # the best tier's kernels are looked into in `make test-all` alone; the rest is what golden-avx2 runs through
    list(APPEND weft_long golden)
endif()

# What waits most of its time: for a peer or a disk that is slow on purpose, for a moment that must pass, for a
# terminal. All others take a place of "cores", of which scripts/test gives as many as there are cores and one more
# (--resource-spec-file); these run beside them. Without such a file ctest knows no places.
set(weft_waiting
    server_hostile server_clients server_shares pull pull_transfer terminal top serve_flags batcher_disk http_server
        serve_otlp server_models)

# What takes longest: `make check` runs it only where the change touches it (label "heavy"), `make test` always.
set(weft_heavy
    batcher_same_material serve_alderbrook quality serve_faults backend_conformance serve_telemetry plan_cli_material
        server_hostile
    pull_transfer hf_reference server_clients same train_gradient serve_same bench_scripts smollm2 smollm2_fetch)

# Gives the current folder's tests their costs, labels, and a limit with room for a machine that does other things
# too; deferred to its end.
function(weft_costs)
    get_property(tests DIRECTORY PROPERTY TESTS)
    foreach(test ${tests})
        set(seconds 5)
        list(FIND weft_test_costs ${test} at)
        if(at GREATER_EQUAL 0)
            math(EXPR at "${at} + 1")
            list(GET weft_test_costs ${at} seconds)
        endif()
        set(cost ${seconds})
        if(DEFINED weft_took_${test})
            set(cost ${weft_took_${test}})
        endif()
        if(cost GREATER seconds)
            set(seconds ${cost})
        endif()
        math(EXPR limit "600 + 20 * ${seconds}")
        set_tests_properties(${test} PROPERTIES COST ${cost} TIMEOUT ${limit})
        if(NOT test IN_LIST weft_waiting)
            set_tests_properties(${test} PROPERTIES RESOURCE_GROUPS "cores:1")
        endif()
        if(test IN_LIST weft_long)
            set_property(TEST ${test} APPEND PROPERTY LABELS long)
        endif()
        if(test IN_LIST weft_heavy)
            set_property(TEST ${test} APPEND PROPERTY LABELS heavy)
        endif()
        if(WEFT_SANITIZE STREQUAL thread AND test IN_LIST weft_of_one_thread)
            set_property(TEST ${test} APPEND PROPERTY LABELS "one thread")
            if(TARGET test_${test})
                set_target_properties(test_${test} PROPERTIES EXCLUDE_FROM_ALL TRUE)
            endif()
        endif()
        if(CMAKE_CROSSCOMPILING AND test IN_LIST weft_of_processor)
            set_property(TEST ${test} APPEND PROPERTY LABELS processor)
            string(REPLACE test_check-kernels check_kernels program test_${test})
            if(TARGET ${program})
                add_dependencies(processor_tests ${program})
            endif()
        endif()
    endforeach()
endfunction()
