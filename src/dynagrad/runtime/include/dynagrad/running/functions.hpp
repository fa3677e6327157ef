// Functions of values inside the rules of a program: code of graphs, called by a chart.
//
// A function with branches, loops or calls is a C++ function of its own, over graphs/call.hpp as any graph. But the
// chart checks whether to stop, by its limits on time and memory and its own flag, so that an endless loop inside a
// function is interrupted like one of rules. A function that fails, as an endless recursion does, is reported in
// the chart, and the rule ends the run.
#pragma once

#include <dynagrad/running/chart.hpp>
#include <dynagrad/graphs/call.hpp>
#include <dynagrad/graphs/vector.hpp>

namespace dynagrad {

// What the functions of one chart share: memory that is kept from call to call, and the words of one that failed.
struct Functions {
  ChartBase* chart;
  graphs::Workspace* kept = nullptr;
  char said[kMessage] = {};
  Context context{nullptr, said};

  explicit Functions(ChartBase* c) : chart(c) {}
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;
  ~Functions() {
    if (kept) graphs::Workspace::leave(kept);
  }

  // The function of that name, or one of several, failed.
  __attribute__((noinline, cold)) void blame(const char* names) { chart->blamed = names, chart->message = said; }
};

namespace graphs {

// Whether the chart has to stop. A round of a loop and a call weigh more than a step of a join.
struct ChartWatch {
  ChartBase* chart;
  bool interrupted(int64_t work = 1) { return chart->spend(32 * work); }
};

// A call from a rule.
class RuleCall : public Call {
 public:
  explicit RuleCall(Functions& f) : Call(&f.context), watch{f.chart}, functions_(f) {
    work_ = f.kept;
    f.kept = nullptr;
  }
  ~RuleCall() {
    if (!work_) return;
    work_->frames.clear();
    work_->slots.clear();
    work_->cells.clear();
    functions_.kept = work_;
    work_ = nullptr;
  }
  // These two are instead of those of a call from Python.
  ChartWatch watch;
  bool stops(int64_t work = 1) { return watch.interrupted(work) || exhausted(); }

 private:
  Functions& functions_;
};

}  // namespace graphs
}  // namespace dynagrad
