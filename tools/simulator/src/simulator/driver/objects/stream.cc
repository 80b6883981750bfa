// Turns the work that is submitted to a stream into items with their edges, or into nodes of a
// capture.

#include <fmt/core.h>

#include <cstring>
#include <exception>
#include <utility>

#include "simulator/driver/objects/graph.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {
namespace {

// Makes a capture invalid if an exception leaves the scope.
class InvalidUnlessDone {
 public:
  explicit InvalidUnlessDone(Capture& capture)
      : capture_(capture), exceptions_(std::uncaught_exceptions()) {}
  ~InvalidUnlessDone() {
    if (std::uncaught_exceptions() > exceptions_) capture_.invalid = true;
  }
  InvalidUnlessDone(const InvalidUnlessDone&) = delete;
  InvalidUnlessDone& operator=(const InvalidUnlessDone&) = delete;

 private:
  Capture& capture_;
  const int exceptions_;
};

}  // namespace

Stream::Stream(std::shared_ptr<Context> context, Kind kind, int number)
    : context_(std::move(context)), kind_(kind), number_(number) {}

std::string Stream::text() const {
  const Device& of = *context_->device;
  // The driver's ordinal, and the name by which Annulus opens the device.
  const std::string device =
      fmt::format("{} (sim:{}:{})", of.ordinal(), of.model().architecture, of.index());
  return number_ == 0 ? fmt::format("the default stream of device {}", device)
                      : fmt::format("stream {} of device {}", number_, device);
}

ItemPointer Stream::make_item(Work work, std::string where, const ChainPointer& chain,
                              std::vector<ItemPointer> after) const {
  auto item = std::make_shared<Item>();
  item->run = std::move(work.run);
  if (work.meet) item->meeting = work.meet();
  item->on_host = work.on_host;
  item->always = work.always;
  item->context = context_;
  item->stream_refusal = refusal_;
  std::vector<OperationPointer> operations;
  for (const ItemPointer& earlier : after) {
    if (earlier != nullptr) operations.push_back(earlier->operation);
  }
  work.operation.where = std::move(where);
  work.operation.checked = context_->device->options().checked != 0;
  work.operation.context = context_;
  std::lock_guard lock(context_->mutex);
  OperationPointer& latest = context_->latest[chain.get()];
  item->operation = state().detector.order.submit(std::move(work.operation), chain, operations);
  item->after = std::move(after);
  latest = item->operation;
  return item;
}

// Queues items, the last of which becomes the stream's last item. If they cannot be queued, they
// are marked as ended: no other item waits for them yet.
void Stream::queue_items(std::span<const ItemPointer> items) {
  try {
    state().queue.add(items);
  } catch (...) {
    end(items);
    throw;
  }
  gates_.clear();
  last_ = items.back();
}

void Stream::end(std::span<const ItemPointer> items) {
  for (const ItemPointer& item : items) state().detector.order.ended(*item->operation);
}

// The item waits for the last item of the stream, for the items of wait_for(), and for the items
// that the rule of the default stream adds. The lock is released before the queue may run the item.
ItemPointer Stream::submit(Work work) {
  if (const std::shared_ptr<Capture> recording = capture()) {
    record(*recording, std::move(work));
    return nullptr;
  }
  std::vector<ItemPointer> after;
  add_implicit(&after);
  ItemPointer item;
  {
    std::lock_guard lock(mutex_);
    after.insert(after.end(), gates_.begin(), gates_.end());
    after.push_back(last_);
    item = make_item(std::move(work), text(), chain_, std::move(after));
    queue_items({&item, 1});
  }
  Queue& queue = state().queue;
  queue.shorten(*context_);
  if (context_->device->options().streams == 0) queue.finish_or_meet(item);
  return item;
}

// Each branch of the graph is a separate chain (check/operation.h). Nodes without an earlier node
// wait for what the whole graph waits for, which includes the last launch of the same graph. The
// item at the end waits for all nodes.
ItemPointer Stream::submit(GraphExec& graph) {
  if (const std::shared_ptr<Capture> recording = capture()) {
    NodeParameters parameters;
    parameters.type = kNodeGraph;
    parameters.child = graph_of(graph);
    parameters.child->within = true;
    record(*recording, work_of(std::move(parameters)));
    return nullptr;
  }
  std::vector<ItemPointer> before;
  add_implicit(&before);
  std::vector<ItemPointer> items;
  {
    std::lock_guard graph_lock(graph.mutex);
    std::lock_guard lock(mutex_);
    before.insert(before.end(), gates_.begin(), gates_.end());
    before.push_back(last_);
    before.push_back(graph.last);
    const std::string where = "a graph on " + text();
    std::vector<ItemPointer> ends = before;
    ends.reserve(before.size() + graph.nodes.size());
    items.reserve(graph.nodes.size() + 1);
    try {
      for (const ExecNode& node : graph.nodes) {
        std::vector<ItemPointer> after = node.after.empty() ? before : std::vector<ItemPointer>();
        for (const std::size_t index : node.after) after.push_back(items[index]);
        const Event* const event = node.parameters().event.get();
        if (node.enabled && node.parameters().type == kNodeWaitEvent) {
          after.push_back(marker_of(*event));
        }
        ChainPointer& chain = graph.chains[node.branch];
        if (chain == nullptr) chain = std::make_shared<Chain>();
        items.push_back(make_item(node.enabled ? node.work : work_of({}), where, chain, after));
        ends.push_back(items.back());
      }
      Work end_of_graph;
      end_of_graph.operation.what = "cuGraphLaunch";
      end_of_graph.run = [](const OperationPointer&) {};
      items.push_back(make_item(std::move(end_of_graph), text(), chain_, std::move(ends)));
    } catch (...) {
      end(items);
      throw;
    }
    queue_items(items);
    graph.last = items.back();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const NodeParameters& parameters = graph.nodes[i].parameters();
      if (!graph.nodes[i].enabled || parameters.type != kNodeRecordEvent) continue;
      std::lock_guard event_lock(parameters.event->mutex);
      parameters.event->marker = items[i];
      parameters.event->capture.reset();
    }
  }
  Queue& queue = state().queue;
  queue.shorten(*context_);
  if (context_->device->options().streams == 0) queue.finish_or_meet(items.back());
  return items.back();
}

// A capture becomes invalid if it lost a node for lack of memory, because it no longer holds what
// the program meant.
void Stream::record(Capture& recording, Work work) {
  std::lock_guard lock(recording.mutex);
  const InvalidUnlessDone guard(recording);
  std::vector<NodePointer>& tails = recording.tails[handle()];
  NodePointer node = add_node(recording.graph, std::move(work), tails);
  tails = {std::move(node)};
  if (const auto joined = recording.joined.find(handle()); joined != recording.joined.end()) {
    joined->second = false;
  }
}

void Stream::wait_for(ItemPointer item) {
  std::lock_guard lock(mutex_);
  if (item != nullptr) gates_.push_back(std::move(item));
}

// The work of a blocking stream waits for the default stream when it is submitted. Work that the
// default stream received later is not part of the blocking stream's work.
std::vector<ItemPointer> Stream::tails() const {
  std::vector<ItemPointer> tails;
  if (kind_ == Kind::kDefault) add_implicit(&tails);
  std::lock_guard lock(mutex_);
  tails.insert(tails.end(), gates_.begin(), gates_.end());
  tails.push_back(last_);
  return tails;
}

ItemPointer Stream::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

void Stream::add_implicit(std::vector<ItemPointer>* tails) const {
  const auto add = [&](const Stream& other) {
    std::lock_guard lock(other.mutex_);
    tails->insert(tails->end(), other.gates_.begin(), other.gates_.end());
    tails->push_back(other.last_);
  };
  if (kind_ == Kind::kBlocking) {
    std::shared_ptr<Stream> default_stream;
    {
      std::lock_guard lock(context_->mutex);
      default_stream = context_->default_stream;
    }
    if (default_stream != nullptr) add(*default_stream);
  } else if (kind_ == Kind::kDefault) {
    for (const std::shared_ptr<Stream>& other : state().streams.all()) {
      if (other->kind_ == Kind::kBlocking && other->context_ == context_) add(*other);
    }
    std::lock_guard lock(context_->mutex);
    tails->insert(tails->end(), context_->retired.begin(), context_->retired.end());
  }
}

void Stream::retire() {
  if (kind_ != Kind::kBlocking) return;
  const std::vector<ItemPointer> ours = tails();
  std::lock_guard lock(context_->mutex);
  std::erase_if(context_->retired, [](const ItemPointer& item) {
    return state().detector.order.observed(*item->operation);
  });
  for (const ItemPointer& item : ours) {
    if (item != nullptr) context_->retired.push_back(item);
  }
}

bool Stream::take_refusal(std::span<const ItemPointer> tails) const {
  return state().queue.take_refusal(tails, refusal_.get());
}

void Stream::set_attribute(int attribute, const void* value) {
  std::lock_guard lock(mutex_);
  auto& to = attributes_[attribute];
  std::memcpy(to.data(), value, to.size());
}

void Stream::get_attribute(int attribute, void* value) const {
  std::lock_guard lock(mutex_);
  const auto found = attributes_.find(attribute);
  const std::array<char, 64> bytes =
      found == attributes_.end() ? std::array<char, 64>() : found->second;
  std::memcpy(value, bytes.data(), bytes.size());
}

void Stream::copy_attributes(const Stream& from) {
  std::map<int, std::array<char, 64>> attributes;
  {
    std::lock_guard lock(from.mutex_);
    attributes = from.attributes_;
  }
  std::lock_guard lock(mutex_);
  attributes_ = std::move(attributes);
}

std::shared_ptr<Capture> Stream::capture() const {
  std::lock_guard lock(mutex_);
  return capture_;
}

void Stream::set_capture(std::shared_ptr<Capture> capture) {
  std::lock_guard lock(mutex_);
  capture_ = std::move(capture);
}

}  // namespace annulus::simulator::driver
