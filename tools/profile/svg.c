// The roofline as a drawing: warp instructions a second over warp instructions for a byte of DRAM, both logarithmic;
// the slopes are DRAM and L2, the ceiling is what schedulers issue. Each kernel is a point at its predicted time.

#include "profile.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 440, LEFT = 78, RIGHT = 24, TOP = 48, BOTTOM = 60 };

typedef struct axes {
  double x0, x1, y0, y1; // decades
} axes;

static double x_of(const axes *a, double v) {
  return LEFT + (log10(v) - a->x0) / (a->x1 - a->x0) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const axes *a, double v) {
  return HEIGHT - BOTTOM - (log10(v) - a->y0) / (a->y1 - a->y0) * (HEIGHT - TOP - BOTTOM);
}

static void put_text(FILE *f, double x, double y, const char *style, const char *text) {
  fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
  for (; *text; text++) switch (*text) {
    case '<': fputs("&lt;", f); break;
    case '>': fputs("&gt;", f); break;
    case '&': fputs("&amp;", f); break;
    default: fputc((unsigned char)*text < 32 ? '?' : *text, f);
    }
  fputs("</text>\n", f);
}

static void put_line(FILE *f, double x, double y, double to_x, double to_y, const char *style) {
  fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x, y, to_x, to_y, style);
}

static double rate_of(const kiln_profile_info *t, const char *name) {
  for (size_t k = 0; k < t->prediction.rate_count; k++)
    if (strcmp(t->prediction.rates[k].name, name) == 0) return t->prediction.rates[k].rate;
  return 1;
}

static double amount_of(const kiln_profile_info *t, const char *name) {
  for (size_t k = 0; k < t->prediction.rate_count; k++)
    if (strcmp(t->prediction.rates[k].name, name) == 0) return t->prediction.rates[k].amount;
  return 0;
}

// Instructions for a byte, and a second.
static void point_of(const kiln_profile_info *t, double *x, double *y) {
  double issues = amount_of(t, "issue"), bytes = amount_of(t, "DRAM");
  *x = (issues > 0 ? issues : 1) / (bytes > 0 ? bytes : 1);
  *y = (issues > 0 ? issues : 1) / (t->prediction.seconds > 0 ? t->prediction.seconds : 1);
}

static axes axes_of(const kiln_profile_info *t, size_t n) {
  double top = rate_of(t, "issue");
  axes a = {.x0 = -3, .x1 = 1, .y0 = floor(log10(top)) - 3, .y1 = ceil(log10(top) + 0.05)};
  for (size_t k = 0; k < n; k++) {
    double x, y;
    point_of(&t[k], &x, &y);
    a.x0 = fmin(a.x0, floor(log10(x))), a.x1 = fmax(a.x1, ceil(log10(x)));
    a.y0 = fmin(a.y0, floor(log10(y)));
  }
  return a;
}

#define GREY  "font-family=\"sans-serif\" font-size=\"11\" fill=\"#555\""
#define LABEL "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\""

static void put_grid(FILE *f, const axes *a) {
  char text[32];
  for (double d = a->x0; d <= a->x1; d++) {
    double x = x_of(a, pow(10, d));
    put_line(f, x, TOP, x, HEIGHT - BOTTOM, "stroke=\"#e4e4e4\"");
    snprintf(text, sizeof text, "%g", pow(10, d));
    put_text(f, x, HEIGHT - BOTTOM + 16, GREY " text-anchor=\"middle\"", text);
  }
  for (double d = a->y0; d <= a->y1; d++) {
    double y = y_of(a, pow(10, d));
    put_line(f, LEFT, y, WIDTH - RIGHT, y, "stroke=\"#e4e4e4\"");
    snprintf(text, sizeof text, "%g G", pow(10, d - 9));
    put_text(f, LEFT - 6, y + 4, GREY " text-anchor=\"end\"", text);
  }
  put_text(f, (WIDTH + LEFT - RIGHT) / 2.0, HEIGHT - 16, LABEL " text-anchor=\"middle\"",
           "warp instructions for a byte of DRAM");
  put_text(f, LEFT, TOP - 8, LABEL, "warp instructions a second");
}

// A slope of so many bytes a second, up to the ceiling.
static void put_slope(FILE *f, const axes *a, double bytes, double ceiling, const char *name, const char *style) {
  double x0 = pow(10, a->x0), x1 = ceiling / bytes, y0 = pow(10, a->y0);
  if (x0 * bytes < y0) x0 = y0 / bytes;
  if (x1 <= x0) return;
  put_line(f, x_of(a, x0), y_of(a, x0 * bytes), x_of(a, x1), y_of(a, ceiling), style);
  double middle = sqrt(x0 * x1);
  put_text(f, x_of(a, middle) - 8, y_of(a, middle * bytes) - 6, LABEL " text-anchor=\"end\"", name);
}

static void put_roof(FILE *f, const axes *a, const kiln_profile_info *t) {
  double ceiling = rate_of(t, "issue"), dram = rate_of(t, "DRAM"), l2 = rate_of(t, "L2");
  put_line(f, x_of(a, fmax(ceiling / l2, pow(10, a->x0))), y_of(a, ceiling), WIDTH - RIGHT, y_of(a, ceiling),
           "stroke=\"#222\" stroke-width=\"2\"");
  put_text(f, WIDTH - RIGHT - 4, y_of(a, ceiling) - 6, LABEL " text-anchor=\"end\"", "issue");
  put_slope(f, a, l2, ceiling, "L2", "stroke=\"#888\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"");
  put_slope(f, a, dram, ceiling, "DRAM", "stroke=\"#222\" stroke-width=\"2\"");
}

static void put_points(FILE *f, const axes *a, const kiln_profile_info *t, size_t n) {
  static const char *const colours[] = {"#c0392b", "#2471a3", "#1e8449", "#b9770e", "#7d3c98"};
  for (size_t k = 0; k < n; k++) {
    double x, y;
    char style[128], text[256];
    point_of(&t[k], &x, &y);
    const char *colour = colours[k % (sizeof colours / sizeof colours[0])];
    fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"%s\"/>\n", x_of(a, x), y_of(a, y), colour);
    bool right = x_of(a, x) > WIDTH / 2.0;
    snprintf(style, sizeof style, "font-family=\"sans-serif\" font-size=\"13\" fill=\"%s\" text-anchor=\"%s\"", colour,
             right ? "end" : "start");
    snprintf(text, sizeof text, "%.120s: %.4g us, %s", t[k].kernel, t[k].prediction.seconds * 1e6,
             t[k].prediction.limiter);
    put_text(f, x_of(a, x) + (right ? -12 : 12), y_of(a, y) + 20, style, text);
  }
}

int profile_draw(const char *path, const kiln_profile_info *kernels, size_t n) {
  FILE *f = output_open(path);
  if (!f) return output_close(f, path);
  char title[128];
  fprintf(f,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n"
          "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
          WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
  if (n) {
    axes a = axes_of(kernels, n);
    snprintf(title, sizeof title, "%s: roofline of %s instructions, predicted", kernels[0].gpu,
             kernels[0].sass.known ? "SASS" : "PTX");
    put_text(f, WIDTH / 2.0, 22, "font-family=\"sans-serif\" font-size=\"15\" fill=\"#000\" text-anchor=\"middle\"",
             title);
    put_grid(f, &a);
    put_roof(f, &a, &kernels[0]);
    put_points(f, &a, kernels, n);
  }
  fprintf(f, "</svg>\n");
  return output_close(f, path);
}
