// Functions: recursive, mutually recursive, through pointers; jumps by tables; local arrays; structs by value.
#include "device.h"
#ifdef __CUDACC__
#include <alloca.h>
#endif

DEVICE_CALL unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

DEVICE_CALL int odd_path(int n, int *calls);
DEVICE_CALL int even_path(int n, int *calls) {
  ++*calls;
  if (n <= 1) return n;
  return n % 2 ? odd_path(n, calls) + 1 : even_path(n / 2, calls) * 2 - 1;
}
DEVICE_CALL int odd_path(int n, int *calls) {
  ++*calls;
  if (n <= 1) return -n;
  return n % 2 ? even_path(n - 1, calls) - odd_path(n / 3, calls) : even_path(n, calls);
}

KERNEL2(calls_recursion, int *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), calls = 0;
  if (i >= n) return;
  int path = i % 3 ? even_path(i * 7, &calls) : odd_path(i * 5, &calls);
  out[3 * i] = (int)ackermann((unsigned)i % 3, (unsigned)i % 5);
  out[3 * i + 1] = path;
  out[3 * i + 2] = calls;
}

DEVICE_CALL void quicksort(int *data, int low, int high) {
  if (low >= high) return;
  int pivot = data[(low + high) / 2], i = low, j = high;
  while (i <= j) {
    while (data[i] < pivot) i++;
    while (data[j] > pivot) j--;
    if (i <= j) {
      int v = data[i];
      data[i++] = data[j];
      data[j--] = v;
    }
  }
  quicksort(data, low, j);
  quicksort(data, i, high);
}

// Each thread sorts 24 numbers of its own in local memory.
KERNEL3(calls_quicksort, const int *__restrict__, in, int *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), local[24];
  if (i >= n) return;
  for (int k = 0; k < 24; k++) local[k] = in[i + k * n];
  quicksort(local, 0, 23);
  for (int k = 0; k < 24; k++) out[i + k * n] = local[k];
}

DEVICE_CALL float op_add(float a, float b) {
  return a + b;
}
DEVICE_CALL float op_sub(float a, float b) {
  return a - b;
}
DEVICE_CALL float op_mul(float a, float b) {
  return a * b;
}
DEVICE_CALL float op_max(float a, float b) {
  return a > b ? a : b;
}
DEVICE_CALL float op_scale(float a, float b) {
  return op_add(op_mul(a, 0.5f), b);
}
typedef float (*operation)(float, float);
GLOBAL operation operations[5] = {op_add, op_sub, op_mul, op_max, op_scale};

// Lanes of a warp call different functions by a table in memory, and one that is chosen on the way.
KERNEL5(calls_table, const unsigned char *__restrict__, code, const float *__restrict__, a, const float *__restrict__,
        b, float *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float v = operations[code[i] % 5](a[i], b[i]);
  operation second = code[i] & 8 ? op_sub : op_max;
  out[i] = second(v, a[i]);
}

// A machine with a stack: a dense switch, which becomes a jump by a table, over local memory.
KERNEL4(calls_interpreter, const unsigned char *__restrict__, program, int, length, int *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), stack[16], top = 0;
  if (i >= n) return;
  stack[0] = i;
  for (int pc = 0; pc < length; pc++) {
    int v = stack[top];
    switch (program[(pc + i % 3) % length]) {
    case 0: stack[top] = v + 1; break;
    case 1: stack[top] = v * 3; break;
    case 2: stack[top] = v ^ (v >> 4); break;
    case 3: stack[top] = -v; break;
    case 4:
      if (top < 15) stack[++top] = v / 2;
      break;
    case 5:
      if (top > 0) stack[--top] += v;
      break;
    case 6:
      if (top > 0) {
        stack[top] = stack[top - 1];
        stack[top - 1] = v;
      }
      break;
    case 7: stack[top] = v & 0xffff; break;
    case 8: stack[top] = v < 0 ? v + 1000 : v - 1000; break;
    case 9: stack[top] = (v << 3) - pc; break;
    default: stack[top] = v + stack[pc % (top + 1)]; break;
    }
  }
  out[i] = stack[top] + top;
}

// Queens on a board of `size`, the first two rows given by the thread: local arrays with indices found on the way.
KERNEL3(calls_queens, unsigned *__restrict__, out, int, size, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), column[16], row = 2;
  if (i >= n) return;
  unsigned found = 0;
  column[0] = i / size;
  column[1] = i % size;
  bool start = column[0] != column[1] && column[0] != column[1] + 1 && column[0] != column[1] - 1;
  if (start) {
    column[2] = -1;
    while (row >= 2) {
      bool free = false;
      while (!free && ++column[row] < size) {
        free = true;
        for (int k = 0; k < row; k++) {
          int d = column[row] - column[k];
          if (d == 0 || d == row - k || d == k - row) free = false;
        }
      }
      if (!free)
        row--;
      else if (row == size - 1)
        found++;
      else
        column[++row] = -1;
    }
  }
  out[i] = found;
}

typedef struct options {
  char tag;
  double scale;
  const float *in;
  short shape[3];
  float *out;
  struct {
    unsigned char low, high;
    long long offset;
  } inner;
} options;
typedef struct ALIGNED(16) quad {
  float x, y, z, w;
} quad;

DEVICE_CALL quad turn(quad q, int by) {
  quad r = {q.y, q.z, q.w, q.x};
  return by > 0 ? turn(r, by - 1) : q;
}

// Parameters of every size and alignment, among them structs; a function that takes and returns one.
KERNEL5(calls_structs, char, sign, options, o, unsigned short, add, quad, q, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  quad t = turn(q, i % 4);
  float v = o.in[i] * (float)o.scale + (float)o.shape[i % 3];
  v += t.x + t.w * 2.0f + (float)add + (float)o.inner.offset + (float)(o.inner.high - o.inner.low);
  o.out[i] = sign < 0 ? -v : v + (float)o.tag;
}

// Room on the stack of a size that only the thread knows.
KERNEL3(calls_alloca, const unsigned *__restrict__, in, unsigned *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  unsigned count = in[i] % 29 + 3, sum = 0;
  unsigned *room = (unsigned *)alloca(count * sizeof(unsigned));
  for (unsigned k = 0; k < count; k++) room[k] = in[i] * (k + 1);
  for (unsigned k = 0; k < count; k++) sum = sum * 31u + room[(k * 7u) % count];
  out[i] = sum;
}
