"""Names made valid in C++: no keywords, no macros, nothing that the C library or the runtime declares.

Nothing here knows what a plan is.
"""

from __future__ import annotations

import re

# Keywords of C++, and names of the interface itself.
RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval
    constexpr constinit continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof
    static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
    union unsigned using virtual void volatile wchar_t while xor xor_eq std dynagrad
    symbol integer real compound list cons is_symbol is_integer is_real is_compound name number to_double arity part
    print settings report run error result item items term argument weight chart base engine external one give take_all
    look_up answer ask asked gradient derivatives
    weighted items_of rows_of place from_words to_words main size_t
    """,
    )
)

# Macros of C headers whose names are not all capitals, on known systems.
_MACROS = frozenset(
    re.findall(
        r"\w+",
        """
    alloca assert be16toh be32toh be64toh errno fpclassify htobe16 htobe32 htobe64 htole16 htole32 htole64 i386
    isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan isnormal issubnormal isunordered
    iszero le16toh le32toh le64toh linux math_errhandling offsetof signbit stderr stdin stdout strdupa strndupa unix
    va_arg va_copy va_end va_start
    """,
    )
)

# Names that the headers of the runtime declare in `dynagrad`, which the class of a program uses unqualified.
_RUNTIME = frozenset(
    re.findall(
        r"\w+",
        """
    Account Apart Arguments Arithmetic Array Arrive BackMatrix BackOfRows BackOne BackTogether Bare Begun BegunBack
    Bits Block Blocks BlocksOf Boolean Chained Changing ChartBase ChartWatch ClosedSystem Collect Columns Computed
    Computes Const Constants Context Convergence Copies CopyKind Cotangents CotangentsOf Count Counter Dense DenseOf
    DenseTable Edges Eight Expectation Extent FactTable Factor Factors Facts FactsPlan Failure Finder Former
    ForwardProduct ForwardValue Found Functions Gains GoesBack GridAlong Ground Grouping GroupingPlan Groups Handle
    Hashed HashedOf HashedTable Heap Here Host Index IndexTable Items Jets Kept Keys Known LevelForm LevelTerm
    Levels LinearSystem Lines Log LogJets Logs Looking Mantissas Mark Moving Multiplied NoColumns NoSystem Nothing
    Nowhere Nth OfRows Once Ones Outcome Parts Patience Places Plain PlainJets PoppedRow Pops Posterior Priority
    Product Queue Range Reached ReaderOf Real Relation RelationBase RelationOf Report Rescue ReverseProduct
    ReverseValue Rounds RowLevels RowsAlong RuleCall SelectJets Selective Settings Shelf Solved SolvedComponent
    Solving Stack StageEntry StageList StageTraits Start Status Strategy StretchOf Summed System Table TableTraits
    TableView Tape TermNode Terms Together Told Tropical Unchained Unlocked ValueReader Viterbi Watch Weights World
    __atomic_fetch_add __atomic_fetch_sub __attribute__ __builtin_add_overflow __builtin_expect
    __builtin_mul_overflow __builtin_prefetch __builtin_reduce_and a absolute add add_64 add_along add_at add_axioms
    add_cells add_each add_each_64 add_eight add_fact add_facts add_lines add_logs add_long add_loop add_matrix
    add_one add_one_along add_product add_row add_scaled add_shifted add_stretch add_sums add_sums_of add_together
    adjoints_side_by_side again agree alignas all all_but all_finite all_ones all_valid all_valid_of all_zero
    allowed alone along among any anything apart arguments arguments_by arguments_of around arrange arrive
    arrive_new arriving as_double as_word at await await_all back back_along back_block back_cells back_logs
    back_matrix back_of_rows back_one back_one_of back_row back_scaled back_shifted back_stretch back_to backward_of
    before before_all begin begin_of begin_round begin_stage begin_watching better better_apart blank bound bound_at
    bound_of bounds build build_dense build_hashed by_edge by_level bytes call_guarded came cell cell_for cell_of
    change_again change_step check check_finite choose_units clear clock_gettime clock_ns close coarse_time column
    complete complete_item complete_row compress computed constant copy correct correct_transposed count counted
    cover create delete_rank dg_forget_blocks difference direct discard dispose divide done dot down each
    each_backwards each_block each_eight each_row each_seed edge edges eight eight_of elapsed element end end_with
    enter enter_slot equal evaluate evaluate_at excess excuse exp exp_from exp_near explore_all explore_item expose
    expose_item fact factor factor_dense factor_of factor_sparse facts fail fail_unsettled failed fails
    far_and_finite far_inverse far_log_of far_of far_plus far_product far_times fill filled find find_cycle
    find_hashed find_item find_rows finder finish finite fire fire_back fire_stage first first_time fits
    fits_doubles flags_at flags_of for_heads forget former_at free_slot fresh full full_now gather gather_again
    gather_apart get give graphs grid_along ground_all group grouping grow grown guarded handle has has_agenda
    has_tangent hash hash_arguments hashed head heed heed_now hide hide_item hold improves in_range in_rows_back
    infinite_none insert inside inside_by interrupted is is_facts is_far is_item is_local is_unknown item_of items
    items_at jacobian jet join judge kCellBits kMessage keep keep_logs kept_place key key_width kind late lay_out
    ldexp leads_out leads_out_at least leave level line line_of lines_from link load locate locate_by log log1p_of
    log_from log_plus log_plus_from longjmp look look_through loops lose lower magnify magnitude make mark
    mark_again mark_at mark_infinite mass measure member memcmp memcpy memmove memset merge minus mix more most
    most_items move moves multiply narrow need negligible new new_facts next next_level no_change no_factor
    no_nearer no_table node node_at node_of nonzero nonzeros norm note nothing nowhere nth number_of number_pattern
    obtain of of_logs of_rows on one one_by_one one_of open open_adjoints open_adjoints_of open_columns open_stage
    open_stages others out over overflowed overflows parted pass pause_here pause_now pending pending_of pick place
    places plan plus plus_apart polished pop pop_final pop_from pop_heap pop_row pop_update popped positive
    posteriors prepare_at_solution primal primals product product_of products_of push push_each push_from push_heap
    push_row put quotient range_of rank ratio raw raw_apart raw_product reach reach_from reach_further
    reached_backward read read_all read_items read_mantissas read_near read_rows record rederive redo redo_stage
    refine refine_transposed refined regrow relative release remainder remove remove_cvref repeat reserve residual
    resize rest rest_of restore restore_item restore_items row row_before row_length row_until rows rows_along
    run_blocks run_pops run_program run_round run_rounds run_stage run_stages same same_as_before same_matrix scale
    scaled seal seed send sent set set_bound set_rank settle settled settled_apart share share_item share_ones
    shifted side_by_side signed_norm size size_of size_with slot_of solve solve_adjoints solve_again solve_dense
    solve_in_doubles solve_linear solve_rest solve_resting solve_side_by_side solve_sparse solve_wide_dense
    solve_with_correction solver_of solves soon sort_by sound span spares spend split spread stage_of stand_still
    start static_assert status_of step step_again stir stop stop_after stop_for_memory stops stretch strides
    subtract sum sum_lines sum_of surely_positive swap swap_facts sweeps symmetric table_of take take_round taken
    tangents test there times times_apart tiny to together_of total totals trace trace_cycle transposed turn
    unchained undo undo_at undo_axioms undo_begin undo_component undo_final undo_in_round undo_pops undo_rounds
    undo_row undo_stage undo_update unindex unit unit_of unlink unlocked unsolved up valid valid_eight value_at view
    wait_on waiting watch watch_gains watched watches_gains weigh weights_fit_doubles weights_free weights_new what
    widen width wipe with_constants within without_size without_tangents word words_of work worst_bound write
    write_row wrong wrong_at zero zeros zeros_safely
""",
    )
)

# Names that C headers declare in the global namespace, so that a namespace cannot have them; float and long double
# forms of functions, and types, are recognised by their suffixes.
_LIBRARY = frozenset(
    re.findall(
        r"\w+",
        """
    a64l abort abs acos acosh aligned_alloc alloca arc4random asctime asin asinh asprintf at_quick_exit atan atan2
    atanh atexit atof atoi atol atoll basename bcmp bcopy bsearch bzero calloc cbrt ceil clearenv clearerr clock
    close copysign cos cosh ctermid ctime cuserid daylight difftime div dprintf drand48 drem dup dysize ecvt environ
    erand48 erf erfc exit exp exp10 exp2 expm1 fabs fclose fcvt fdim fdopen feof ferror fflush ffs fgetc fgetpos
    fgets fileno finite flockfile floor fma fmax fmemopen fmin fmod fopen fprintf fputc fputs fread free freopen
    frexp fscanf fseek fseeko fsetpos ftell ftello ftrylockfile funlockfile fwrite gamma gcvt getc getchar getdate
    getdelim getenv getline getloadavg getpid getpt getsubopt getw gmtime grantpt hypot ilogb index initstate isatty
    j0 j1 jn jrand48 l64a labs lcong48 ldexp ldiv lgamma link llabs lldiv llogb llrint llround localtime log log10
    log1p log2 logb lrand48 lrint lround lseek malloc mblen mbstowcs mbtowc memccpy memchr memcmp memcpy memfrob
    memmem memmove mempcpy memrchr memset mkdtemp mkostemp mkstemp mkstemps mktemp mktime modf mrand48 nan nanosleep
    nearbyint nextafter nextdown nexttoward nextup nrand48 obstack open pclose perror pipe popen posix_memalign pow
    printf pselect ptsname putc putchar putenv puts putw qecvt qfcvt qgcvt qsort quick_exit raise rand random
    rawmemchr read realloc reallocarray realpath remainder remove remquo rename renameat rewind rindex rint round
    roundeven rpmatch scalb scalbln scalbn scanf secure_getenv seed48 select setbuf setbuffer setenv setlinebuf
    setstate setvbuf signal signgam significand sin sincos sinh sleep snprintf sprintf sqrt srand srand48 srandom
    sscanf stpcpy stpncpy strcasecmp strcasestr strcat strchr strchrnul strcmp strcoll strcpy strcspn strdup
    strerror strfry strftime strlcat strlcpy strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk
    strptime strrchr strsep strsignal strspn strstr strtod strtof strtok strtol strtold strtoll strtoq strtoul
    strtoull strtouq strverscmp strxfrm sync system tan tanh tempnam tgamma time timegm timelocal timer timespec
    timeval timezone tm tmpfile tmpnam trunc tzname tzset uint ulong ungetc unlink unlockpt unsetenv ushort valloc
    vasprintf vdprintf vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wait wcstombs wctomb write y0 y1
    yn
    """,
    )
)


def cxx_name(name: str) -> str:
    """A name made a valid C++ identifier.

    >>> cxx_name("goal"), cxx_name("for"), cxx_name("n p"), cxx_name("2nd"), cxx_name("NULL")
    ('goal', 'for_', 'n_p', 'p2nd', 'NULL_')
    """
    plain = re.sub(r"__+", "_", re.sub(r"[^A-Za-z0-9_]", "_", name))
    if not plain[:1].isalpha():
        plain = re.sub(r"__+", "_", "p" + plain)
    macro = plain in _MACROS or (len(plain) > 1 and not any(c.islower() for c in plain))
    return re.sub(r"__+", "_", plain + "_") if plain in RESERVED or macro else plain


def namespace(name: str) -> str:
    """A name made valid for a namespace, which must not clash with declarations of the C library.

    >>> namespace("parser"), namespace("index"), namespace("sinf"), namespace("size_t")
    ('parser', 'index_', 'sinf_', 'size_t_')
    """
    plain = cxx_name(name)
    stem = re.sub(r"(f(16|32|64|128)x?|[flr]|_r|_l|_unlocked|64)$", "", plain)
    taken = plain in _LIBRARY or stem in _LIBRARY or plain in _RUNTIME or plain.endswith("_t")
    return plain + "_" if taken else plain
