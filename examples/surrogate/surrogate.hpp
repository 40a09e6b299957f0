// Latencies of a storage system, from the tables that `hybridsim surrogate` wrote.
//
//     hybridsim::Surrogate drive("drive.json", "steady");
//     drive.closed("read", 1, 65536, 16).mean();                  // microseconds
//     drive.open("write", 0.7, 4096, 20'000).quantile(uniform);   // draws one
//
// A load outside the tables throws std::out_of_range. Needs C++17 and nlohmann/json.
#pragma once
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hybridsim {
using Values = std::vector<double>;

struct Latency {  // a distribution in microseconds
    Values p, q;  // probabilities; quantiles, then the means of the bands between them
    double mean() const {
        double sum = 0;
        for (size_t i = 1; i < p.size(); i++) sum += (p[i] - p[i - 1]) * q[p.size() + i - 1];
        return sum;
    }
    double quantile(double probability) const {
        probability = std::clamp(probability, 0.0, 1.0);
        size_t i = std::lower_bound(p.begin(), p.end(), probability) - p.begin();
        i = std::clamp<size_t>(i, 1, p.size() - 1);
        double least = q[i - 1], most = q[i], mean = q[p.size() + i - 1];
        double power = std::max(most - mean, 0.0) / std::max(mean - least, 1e-300);
        return least + (most - least) * std::pow((probability - p[i - 1]) / (p[i] - p[i - 1]), power);
    }
};

class Surrogate {
    Values probabilities;
    nlohmann::json tables;
    static double idle(double load) { return -std::log1p(-load); }
    static double log(double x) { return std::log(x); }
    static double same(double x) { return x; }
    Latency at(const char *loop, const std::string &op, const Values &load, double (*axis)(double)) const {
        const char *const names[] = {"read_share", "bytes", "load"};
        double (*const scales[])(double) = {same, log, axis};
        std::vector<std::pair<size_t, double>> corners{{0, 1.0}};
        for (int a = 0; a < 3; a++) {
            Values knots = tables.at(loop).at(names[a]);
            double x = std::clamp(load[a], knots.front(), knots.back());
            if (!(std::abs(load[a] - x) <= 1e-9 * x)) throw std::out_of_range(names[a]);  // rounding, of rates
            size_t i = std::lower_bound(knots.begin(), knots.end(), x) - knots.begin();
            double below = scales[a](knots[i ? i - 1 : 0]), above = scales[a](knots[i]);
            double part = knots[i] == x ? 1 : (scales[a](x) - below) / (above - below);
            std::vector<std::pair<size_t, double>> finer;
            for (auto [corner, weight] : corners) {
                finer.emplace_back(corner * knots.size() + i, weight * part);
                if (part < 1) finer.emplace_back(corner * knots.size() + i - 1, weight * (1 - part));
            }
            corners = finer;
        }
        Values logs(2 * probabilities.size() - 1);
        for (auto [corner, weight] : corners) {
            const auto &knot = tables.at(loop).at(op).at(corner);
            if (knot.is_null()) throw std::out_of_range("too little to " + op);
            for (size_t i = 0; i < logs.size(); i++) logs[i] += weight * std::log(knot[i].get<double>());
        }
        for (double &value : logs) value = std::exp(value);
        return {probabilities, logs};
    }

  public:
    Surrogate(const std::string &path, const std::string &state) {
        auto document = nlohmann::json::parse(std::ifstream(path));
        if (document.at("format") != "hybridsim-surrogate" || document.at("version") != 1)
            throw std::runtime_error(path + ": not version 1 of hybridsim-surrogate");
        probabilities = document.at("probabilities").get<Values>(), tables = document.at("states").at(state);
    }
    Latency closed(const std::string &op, double read_share, double size, double depth) const {
        return at("closed", op, {read_share, size, depth}, log);
    }
    double iops(double read_share, double size, double depth) const {  // by Little's law
        double us = read_share > 0 ? read_share * closed("read", read_share, size, depth).mean() : 0;
        if (read_share < 1) us += (1 - read_share) * closed("write", read_share, size, depth).mean();
        return depth * 1e6 / us;
    }
    Latency open(const std::string &op, double read_share, double size, double per_s) const {
        double most = iops(read_share, size, tables.at("closed").at("load").back());
        return at("open", op, {read_share, size, per_s / most}, idle);
    }
};
}  // namespace hybridsim
