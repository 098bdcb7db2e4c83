// A kernel that traps: to this process the card is lost from then on, as by a fault of the hardware.
#pragma once

namespace norma::test {

void lose_gpu();

}  // namespace norma::test
