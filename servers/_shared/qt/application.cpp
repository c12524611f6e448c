#include "servers/_shared/qt/application.hpp"

#include <QSocketNotifier>

namespace netdyno::qt {
namespace {

/// Qt wants an UTF-8 locale, and warns on stderr where it finds another (the C locale of most containers).
int& with_utf8_locale(int& count) {
  qputenv("LC_ALL", "C.UTF-8");
  return count;
}

}  // namespace

Application::Application() : application_(with_utf8_locale(count_), arguments_) {}

void Application::run_until(int stop) {
  QSocketNotifier told{stop, QSocketNotifier::Read};
  QObject::connect(&told, &QSocketNotifier::activated, &application_, &QCoreApplication::quit);
  QCoreApplication::exec();
}

}  // namespace netdyno::qt
