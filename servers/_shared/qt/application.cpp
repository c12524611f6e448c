#include "servers/_shared/qt/application.hpp"

#include <QSocketNotifier>
#include <QTimer>
#include <chrono>

namespace netdyno::qt {
namespace {

/// Qt wants an UTF-8 locale, and warns on stderr where it finds another (the C locale of most containers).
int& with_utf8_locale(int& count) {
  qputenv("LC_ALL", "C.UTF-8");
  return count;
}

}  // namespace

QtApplication::QtApplication() : application_(with_utf8_locale(count_), arguments_) {}

void QtApplication::run_until(int stop, ApplicationTick& tick) {
  QSocketNotifier stop_signal{stop, QSocketNotifier::Read};
  QObject::connect(&stop_signal, &QSocketNotifier::activated, &application_, &QCoreApplication::quit);
  QTimer timer;
  timer.setSingleShot(true);
  timer.setTimerType(Qt::PreciseTimer);  // the default may be 5% off
  const auto wait = [&] {
    if (const auto left = tick.time_left()) timer.start(std::chrono::ceil<std::chrono::milliseconds>(*left));
  };
  QObject::connect(&timer, &QTimer::timeout, &timer, [&] {
    tick.record();
    wait();
  });
  tick.start();
  wait();
  QCoreApplication::exec();
  tick.record();
}

}  // namespace netdyno::qt
